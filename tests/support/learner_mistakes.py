"""Mistakes that learners make in the exercises of `minigrad learn`: what stands in the solution, and what they write instead."""

from __future__ import annotations

MISTAKES: dict[int, dict[str, list[tuple[str, str]]]] = {
    1: {
        "slopes": [("b + 1, (b + 1) + (a + b)", "b + 1, b + 1"), ("b + 1, (b + 1)", "b + 1, b")],
        "central": [("f(x - h)) / (2 * h)", "f(x)) / h"), ("/ (2 * h)", "/ h"), ("/ (2 * h)", "/ 2 * h")],
        "prices": [
            ("w, b = w - rate * slope_w, b - rate * slope_b", "w, b = w + rate * slope_w, b + rate * slope_b"),
            ("sum(2 * error * kilometres", "sum(2 * error"),
            ("slope_b = sum(2 * error for error in errors)", "slope_b = 2 * errors[-1]"),
        ],
    },
    2: {
        "sigmoid": [
            ("out * (1 - out)", "a * (1 - a)"),
            ("math.exp(-a)", "math.exp(a)"),
            ("return out, out * (1 - out)", "return out * (1 - out)"),
        ],
        "history": [
            ("        if name not in seen:\n            seen.add(name)\n", "        if True:\n"),
            (
                "            for parent in made_from[name]:\n                visit(parent)\n            order.append(name)",
                "            order.append(name)\n            for parent in made_from[name]:\n                visit(parent)",
            ),
        ],
        "Value": [
            ("parent.grad += slope", "parent.grad = slope"),
            ("(other.data, self.data)", "(self.data, other.data)"),
            ("in reversed(order)", "in order"),
            ("        self.grad = 1.0\n", ""),
        ],
    },
    3: {
        "shares": [
            ("axis=1, keepdims=True", "axis=1"),
            ("axis=1", "axis=0"),
            ("t.sum(axis=1, keepdims=True)", "t.sum()"),
        ],
        "gradients": [
            ("slope.sum(axis=0)", "slope"),
            ("out / out.size", "out"),
            ("out / out.size", "out / len(out)"),
            ("X.T @ slope", "slope.T @ X"),
        ],
        "slope_along": [("f(x - h * v)", "f(x)"), ("/ (2 * h)", "/ h"), ("f(x + h * v)", "f(x + h)")],
    },
    4: {
        "xnor": [
            ("-20 * h1 - 20 * h2 + 30", "20 * h1 + 20 * h2 - 30"),
            ("+ 30", "+ 50"),
            ("+ 30", "- 30"),
            ("sigmoid(-20 * h1 - 20 * h2 + 30)", "-20 * h1 - 20 * h2 + 30"),
            ("- 20 * h2", ""),
        ],
        "relu_xor": [
            ("- 2 * max(0, a + b - 1)", ""),
            ("2 * max(0, a + b - 1)", "max(0, a + b - 1)"),
            ("a + b - 1", "a + b"),
        ],
        "collapsed": [("W2 @ b1 + b2", "b1.sum() + b2"), ("W2 @ b1 + b2", "W2 @ b1"), ("W2 @ W1", "W1.T @ W2.T")],
    },
    5: {
        "pulse": [(" + relu(x - 1.1)", ""), ("10 * ", ""), ("- relu(x - 1)", "- relu(x - 0.9)")],
        "folded": [("range(times)", "range(times - 1)"), ("range(times)", "range(1)"), ("- 4 *", "- 2 *")],
        "best_line": [
            ("y.mean() - slope * x.mean()", "y.mean()"),
            ("(apart * (y - y.mean())).sum()", "(x * y).sum()"),
            ("slope, y.mean()", "slope * 2, y.mean()"),
        ],
    },
    6: {
        "softmax": [("z - z.max()", "z"), ("raised / raised.sum()", "raised"), ("np.exp(z - z.max())", "z - z.min()")],
        "pull": [
            ("raised / raised.sum() - y", "y - raised / raised.sum()"),
            ("raised / raised.sum() - y", "raised - y"),
            (" - y", ""),
        ],
        "weight_gradient": [
            (" / len(labels)", ""),
            (" -= 1", " = -1"),
            ("axis=1, keepdims=True)\n    probabilities[", "axis=0, keepdims=True)\n    probabilities["),
        ],
    },
    7: {
        "speed_limit": [
            ("2 * (1 + momentum) / steepness", "2 / steepness"),
            ("(1 + momentum)", "(1 - momentum)"),
            ("/ steepness", "/ steepness**2"),
        ],
        "SignDescent": [
            ("xp.sign(g)", "g"),
            ("p -= ", "p += "),
            ('p -= group["lr"] * xp.sign(g)', 'p = p - group["lr"] * xp.sign(g)'),
            ("xp.sign(g)", "(2 * (g > 0) - 1)"),
        ],
        "rate": [
            ("max(total - step, 0)", "(total - step)"),
            ("/ (total - warmup)", "/ total"),
            ("base * step / warmup", "base"),
        ],
    },
    8: {
        "encode": [("place += 2", "place += 1"), ("        pieces = joined\n", ""), ("[left, right]", "[right, left]")],
        "table_gradient": [
            ("np.add.at(gradient, rows, 1)", "gradient[rows] += 1"),
            ("np.add.at(gradient, rows, 1)", "gradient[rows] = 1"),
            ("np.zeros((size, width))", "np.zeros((width, size))"),
        ],
        "neighbours": [
            ("max(0, place - window)", "place - window"),
            ("place + 1 : place + window + 1", "place + 1 : place + window"),
            (" + words[place + 1 : place + window + 1]", ""),
            ("place + 1 :", "place :"),
        ],
    },
    9: {
        "codes": [
            ("(-np.arange(0, dim, 2) / dim)", "(-np.arange(dim // 2) / dim)"),
            ("np.sin(angles), np.cos(angles)", "np.cos(angles), np.sin(angles)"),
            (
                "np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(count, dim)",
                "np.concatenate([np.sin(angles), np.cos(angles)], axis=1)",
            ),
        ],
        "turned": [
            ("math.sin(angle), -math.sin(angle)", "-math.sin(angle), math.sin(angle)"),
            ("(-i / dim)", "(-2 * i / dim)"),
            ("angle = step * ", "angle = "),
        ],
        "closest": [
            ("    squares[np.tril_indices(len(rows))] = np.inf\n", ""),
            ("argmin", "argmax"),
            ("int(first), int(second)", "int(second), int(first)"),
        ],
    },
    10: {
        "attention": [
            (" / np.sqrt(K.shape[1])", ""),
            ("np.sqrt(K.shape[1])", "K.shape[1]"),
            ("np.sqrt(K.shape[1])", "np.sqrt(K.shape[0])"),
            ("weights.sum(axis=1, keepdims=True)", "weights.sum(axis=0)"),
            ("Q @ K.T", "K @ Q.T"),
        ],
        "weights": [
            ("divided - divided.max(axis=1, keepdims=True)", "divided"),
            ("scores / divisor", "scores * divisor"),
            ("raised.sum(axis=1, keepdims=True)", "raised.sum()"),
        ],
        "in_their_places": [
            ("    placed[order] = output\n", "    placed[:] = output[order]\n"),
            ("    placed[order] = output\n", "    placed[:] = output\n"),
            ("placed[order] = output", "placed[order[::-1]] = output"),
            ("placed[order] = output", "placed[np.argsort(order)] = output"),
            ("placed[order] = output", "placed[order] = output[order]"),
            ("return placed", "return output[order[order]]"),
        ],
    },
    11: {
        "layer_norm": [
            ("x - x.mean(axis=-1, keepdims=True)", "x - x.mean()"),
            ("(centred**2).mean(axis=-1, keepdims=True) + eps", "centred.var(axis=-1, keepdims=True, ddof=1) + eps"),
            ("keepdims=True) + eps)", "keepdims=True))"),
        ],
        "fires": [
            (" - (len(key) - 1)", ""),
            ("(len(key) - 1)", "len(key)"),
            ("(len(key) - 1)", "1"),
            ("(key @ stream).sum()", "(key @ stream).max()"),
        ],
        "masked_weights": [
            ("-np.inf", "0.0"),
            ("np.where(real, scores, -np.inf)", "scores"),
            ("[:, None, None]", "[:, None, None] + 1"),
            (
                "raised.sum(axis=-1, keepdims=True)",
                "np.exp(scores - hidden.max(axis=-1, keepdims=True)).sum(axis=-1, keepdims=True)",
            ),
        ],
    },
    12: {
        "causal_weights": [
            ("np.tril(", "np.triu("),
            ("-np.inf", "0.0"),
            ("np.tril(np.ones_like(scores))", "np.tril(np.ones_like(scores), -1)"),
        ],
        "forced": [
            ("[start, *target], [*target, end]", "[*target, end], [start, *target]"),
            ("[start, *target]", "[*target]"),
            ("[*target, end]", "[start, *target, end]"),
            ("[start, *target], [*target, end]", "[start, *target, end], [start, *target, end]"),
        ],
        "greedy": [
            ("words[1:]", "words"),
            ("<= longest", "< longest"),
            (
                "        if word == end:\n            break\n        words.append(word)",
                "        words.append(word)\n        if word == end:\n            break",
            ),
        ],
    },
    13: {
        "score": [
            ("math.log(chance)", "chance"),
            (" ** alpha", ""),
            ("len(chances)) / 6", "len(chances))"),
            (" / ((5", " * ((5"),
        ],
        "crossing": [
            ("second / first", "first / second"),
            ("math.log(second / first)", "second / first"),
            ("(5 + m) / (5 + n)", "m / n"),
        ],
        "search": [
            ("[:width]", ""),
            ("key=lambda found: -found[1])[:width]", "key=lambda found: found[1])[:width]"),
            ("chance * after), key", "after), key"),
            ("max(best, (beginning", 'max(("", 0.0), (beginning'),
        ],
    },
    14: {
        "warmed": [
            (" / temperature", " * temperature"),
            ("(logits - logits.max())", "logits"),
            ("np.exp((logits - logits.max()) / temperature)", "np.exp(logits - logits.max()) / temperature"),
        ],
        "nucleus": [
            ("sums - probabilities[order] < p", "sums < p"),
            ("kept / kept.sum()", "kept"),
            ("np.argsort(-probabilities)", "np.argsort(probabilities)"),
        ],
        "cost": [
            ("12 * n * d**2", "4 * n * d**2"),
            ("2 * n**2 * d", "n**2 * d"),
            ("2 * n**2 * d", "2 * n * d**2"),
            ("12 * n * d**2", "12 * d**2"),
        ],
    },
    15: {
        "hide": [
            ("np.where(ways < 0.8, MASK, np.where(ways < 0.9, others, row))", "MASK"),
            ("np.where(chosen, row, IGNORED)", "np.where(chosen & (fed != row), row, IGNORED)"),
            ("np.where(chosen, row, IGNORED)", "row"),
            ("np.where(chosen, fed, row), ", "fed, "),
        ],
        "likeliest": [
            ("(first[:, None] * second).argmax()", "second.argmax()"),
            (
                "a, b = np.unravel_index((first[:, None] * second).argmax(), second.shape)",
                "a, b = first.argmax(), second[first.argmax()].argmax()",
            ),
            ("int(a), int(b)", "int(b), int(a)"),
        ],
        "accuracy": [
            ("    if not asked.any():\n        return 0.0\n", ""),
            ("(scores[asked].argmax(axis=1) == wanted[asked]).mean()", "(scores.argmax(axis=1) == wanted).mean()"),
            ("axis=1", "axis=0"),
        ],
    },
    16: {
        "accumulated": [
            ("(gradients * sizes[:, None]).sum(axis=0) / sizes.sum()", "gradients.mean(axis=0)"),
            (" / sizes.sum()", ""),
            ("sizes.sum()", "len(sizes)"),
        ],
        "scale": [
            ("math.ceil", "int"),
            ("max(0, math.ceil(-14 - math.log2(gradient)))", "math.ceil(-14 - math.log2(gradient))"),
            ("-14 -", "-24 -"),
            ("math.log2", "math.log10"),
        ],
        "sends": [
            ("(rank - turn) % ranks", "rank"),
            ("(rank - turn) % ranks", "(rank + turn) % ranks"),
            ("(rank - turn) % ranks", "(rank - turn)"),
            ("(rank - turn) % ranks", "rank - 1 if turn else rank"),
            ("(rank - turn) % ranks", "turn"),
        ],
    },
    17: {
        "quantised": [
            (" - 1)\n    return", ")\n    return"),
            ("np.rint(weight / scales)", "(weight / scales)"),
            ("axis=1, keepdims=True", "keepdims=True"),
            ("np.abs(weight).max", "weight.max"),
        ],
        "errors": [
            ("axis=1, keepdims=True", "axis=0"),
            ("np.abs(weight - step", "(weight - step"),
            ("np.rint(weight / step)", "(weight / step).astype(int)"),
            (".mean()\n", ".max()\n"),
        ],
        "product": [
            ('x.astype("int32") @ weight.T.astype("int32")', "x @ weight.T"),
            ('x.astype("int32") @ weight.T.astype("int32")', '(x @ weight.T).astype("int32")'),
            ('x.astype("int32") @ weight.T.astype("int32")', 'x.astype("int16") @ weight.T.astype("int16")'),
            ("weight.T.astype", "weight.astype"),
        ],
    },
    18: {
        "squareplus_rule": [
            ("g * ", ""),
            ("(1 + a / np.sqrt(a * a + bend))", "(1 + 1 / np.sqrt(a * a + bend))"),
            ("(1 + a / np.sqrt(a * a + bend)) / 2", "(1 + a / np.sqrt(a * a + bend))"),
        ],
        "Waves": [
            ("self.shifts = mg.nn.Parameter(mg.randn(count))", "self.shifts = mg.randn(count)"),
            (" + self.shifts)", ")"),
            ("x * self.frequencies + self.shifts", "(x + self.shifts) * self.frequencies"),
            ("mg.sin", "mg.cos"),
        ],
        "in_ring": [
            (", keepdims=True", ""),
            ("(far > inner) & ", ""),
            ("np.sqrt((points**2).sum(axis=1, keepdims=True))", "(points**2).sum(axis=1, keepdims=True)"),
            ("(points**2)", "abs(points)"),
        ],
    },
    19: {
        "normal": [("xp.sqrt", "np.sqrt"), ("x.mean()", "np.mean(x)"), ("x.var()", "np.var(x)"), (" + 1e-5", "")],
        "written": [
            (
                "[loss.item() for step, loss in enumerate(losses) if step % every == 0]",
                "[loss.item() for loss in losses][::every]",
            ),
            ("step % every == 0", "(step + 1) % every == 0"),
            ("[loss.item()", "[loss"),
        ],
        "softsquare_rule": [("g * ", ""), (" ** 2", ""), ("g * 2 * a / (1 + a * a) ** 2", "g * 2 * a / (2 * a)")],
    },
    20: {
        "needed": [
            ("            wanted.update(inputs)\n", ""),
            ("reversed(program)", "program"),
            ("kept[::-1]", "kept"),
        ],
        "computed_first": [
            ("tuple(first.get(one, one) for one in inputs)", "tuple(inputs)"),
            ("tuple(first.get(one, one) for one in inputs)", "frozenset(first.get(one, one) for one in inputs)"),
            ("op, tuple", "tuple"),
        ],
        "peak": [
            ("one in read_later or one in stays", "True"),
            (" or one in stays", ""),
            ("in_use + sum(sizes[one] for one in alive)", "in_use + sum(sizes[one] for one in alive if one != name)"),
            ("place + 1 :", "place :"),
        ],
    },
    21: {
        "packed": [
            ("levels[:16] | levels[16:] << 4", "levels[::2] | levels[1::2] << 4"),
            ("levels[:16] | levels[16:] << 4", "levels[:16] << 4 | levels[16:]"),
            ("/ 15", "/ 16"),
            ("[step, smallest]", "[smallest, step]"),
            ("np.rint((weights - smallest) / step)", "((weights - smallest) / step)"),
        ],
        "unpacked": [
            ("[block[4:] & 15, block[4:] >> 4]", "[block[4:] >> 4, block[4:] & 15]"),
            ("block[4:] >> 4]) + smallest", "block[4:] >> 4])"),
            ("step, smallest =", "smallest, step ="),
        ],
        "sentences": [
            ("(vectors * real).sum(axis=1) / real.sum(axis=1)", "vectors.mean(axis=1)"),
            ("means / np.sqrt((means**2).sum(axis=1, keepdims=True))", "means"),
            ("(means**2).sum(axis=1, keepdims=True)", "(means**2).sum()"),
        ],
    },
    22: {
        "remembered": [
            ("gate * state + (1 - gate) * word", "(1 - gate) * state + gate * word"),
            ("(1 - gate) * word", "word"),
            ("        states.append(state)\n    return np.array(states)", "    return state"),
            ("np.zeros(x.shape[1])", "x[0]"),
        ],
        "rounded": [
            ("axis=1 if by_row else None", "axis=1"),
            ("axis=1 if by_row else None", "axis=None"),
            ("(2 ** (bits - 1) - 1)", "(2 ** (bits - 1))"),
            ("np.rint(weight / scale) * scale", "np.rint(weight / scale)"),
        ],
        "next_word": [
            ("int(allowed[scores.argmax()])", "int(scores.argmax())"),
            (" + bias[allowed]", ""),
            ("bias[allowed]", "bias[: len(allowed)]"),
            (
                "scores = table[allowed] @ hidden + bias[allowed]\n    return int(allowed[scores.argmax()]), scores",
                "scores = table @ hidden + bias\n    return int(scores.argmax()), scores[allowed]",
            ),
        ],
    },
    23: {
        "states_of": [
            ("U @ h", "U @ np.zeros(len(b))"),
            ("U @ h + b)", "U @ h)"),
            ("W @ row + U @ h", "U @ h"),
            ("return np.array(states)", "return h"),
            ("np.zeros(len(b)), []", "np.tanh(b), []"),
        ],
        "lstm_step": [
            ("i, f, g, o = np", "f, i, g, o = np"),
            ("i, f, g, o = np", "i, f, o, g = np"),
            ("np.tanh(g) / (1", "g / (1"),
            ("return np.tanh(new) /", "return new /"),
            ("np.tanh(new) / (1 + np.exp(-o)), new", "new, np.tanh(new) / (1 + np.exp(-o))"),
        ],
        "look_back": [
            ("np.tanh(W @ state + memory @ U.T) @ v", "(W @ state + memory @ U.T) @ v"),
            ("W @ state + memory", "memory"),
            ("np.exp(scores) / np.exp(scores).sum()", "np.exp(scores)"),
            ("np.exp(scores) / np.exp(scores).sum()", "scores / scores.sum()"),
            ("weights @ memory, weights", "weights @ memory, scores"),
        ],
    },
    24: {
        "patches_of": [
            ("apart.transpose(0, 2, 4, 1, 3, 5).", "apart."),
            ("(0, 2, 4, 1, 3, 5)", "(0, 2, 4, 3, 5, 1)"),
            ("(0, 2, 4, 1, 3, 5)", "(0, 4, 2, 1, 3, 5)"),
            (
                "pictures.reshape(count, channels, high // patch, patch, wide // patch, patch)",
                "pictures.reshape(count, channels, patch, high // patch, patch, wide // patch)",
            ),
        ],
        "joined": [
            ("apart.transpose(0, 3, 1, 4, 2, 5).", "apart."),
            ("(0, 3, 1, 4, 2, 5)", "(0, 3, 1, 2, 4, 5)"),
            ("(0, 3, 1, 4, 2, 5)", "(0, 3, 2, 4, 1, 5)"),
        ],
        "lost": [
            ("            covered = picture.copy()\n", "            covered = picture\n"),
            ("chance(picture) - chance(covered)", "chance(covered)"),
            ("chance(picture) - chance(covered)", "chance(covered) - chance(picture)"),
            ("j * patch : (j + 1) * patch", ":"),
        ],
    },
    25: {
        "share": [
            ("np.maximum(x @ up[own].T, 0) @ down[:, own].T", "np.maximum(x @ up.T, 0) @ down.T"),
            ("np.maximum(x @ up[own].T, 0)", "(x @ up[own].T)"),
            ("np.maximum(x @ up[own].T, 0) @ down[:, own].T", "np.maximum(x @ up[own].T @ down[:, own].T, 0)"),
            ("slice(rank * size, (rank + 1) * size)", "slice(rank, None, ranks)"),
        ],
        "bubble": [
            ("(pieces + stages - 1)", "pieces"),
            ("(stages - 1) / (", "stages / ("),
            ("(stages - 1) / (pieces + stages - 1)", "1 / pieces"),
        ],
        "balanced": [
            (
                "    best = None\n",
                "    return [len(costs) // stages] * (stages - 1) + [len(costs) - len(costs) // stages * (stages - 1)]\n    best = None\n",
            ),
            ("slowest < best[0]", "slowest > best[0]"),
            ("sum(costs[:first])", "first"),
        ],
    },
}
