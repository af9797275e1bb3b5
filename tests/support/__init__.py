"""What several tests share: cases, oracles, a fake device, and programs that tests run as processes."""
