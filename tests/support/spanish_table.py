"""Spanish verbs written out by hand, against which the grammar's own conjugation is checked."""

from collections.abc import Iterator

TENSES = ("present", "preterite", "imperfect", "future")
PERSONS = ("1s", "2s", "3s", "1p", "3p")

# For yo, tú, él, nosotros, ellos: present, preterite, imperfect, future; then the gerund.
_TABLE = """
ser: soy eres es somos son | fui fuiste fue fuimos fueron |
    era eras era éramos eran | seré serás será seremos serán | siendo
estar: estoy estás está estamos están | estuve estuviste estuvo estuvimos estuvieron |
    estaba estabas estaba estábamos estaban | estaré estarás estará estaremos estarán | estando
tener: tengo tienes tiene tenemos tienen | tuve tuviste tuvo tuvimos tuvieron |
    tenía tenías tenía teníamos tenían | tendré tendrás tendrá tendremos tendrán | teniendo
querer: quiero quieres quiere queremos quieren | quise quisiste quiso quisimos quisieron |
    quería querías quería queríamos querían | querré querrás querrá querremos querrán | queriendo
poder: puedo puedes puede podemos pueden | pude pudiste pudo pudimos pudieron |
    podía podías podía podíamos podían | podré podrás podrá podremos podrán | pudiendo
ir: voy vas va vamos van | fui fuiste fue fuimos fueron |
    iba ibas iba íbamos iban | iré irás irá iremos irán | yendo
venir: vengo vienes viene venimos vienen | vine viniste vino vinimos vinieron |
    venía venías venía veníamos venían | vendré vendrás vendrá vendremos vendrán | viniendo
hacer: hago haces hace hacemos hacen | hice hiciste hizo hicimos hicieron |
    hacía hacías hacía hacíamos hacían | haré harás hará haremos harán | haciendo
ver: veo ves ve vemos ven | vi viste vio vimos vieron |
    veía veías veía veíamos veían | veré verás verá veremos verán | viendo
salir: salgo sales sale salimos salen | salí saliste salió salimos salieron |
    salía salías salía salíamos salían | saldré saldrás saldrá saldremos saldrán | saliendo
traer: traigo traes trae traemos traen | traje trajiste trajo trajimos trajeron |
    traía traías traía traíamos traían | traeré traerás traerá traeremos traerán | trayendo
conocer: conozco conoces conoce conocemos conocen | conocí conociste conoció conocimos conocieron |
    conocía conocías conocía conocíamos conocían | conoceré conocerás conocerá conoceremos conocerán | conociendo
leer: leo lees lee leemos leen | leí leíste leyó leímos leyeron |
    leía leías leía leíamos leían | leeré leerás leerá leeremos leerán | leyendo
dormir: duermo duermes duerme dormimos duermen | dormí dormiste durmió dormimos durmieron |
    dormía dormías dormía dormíamos dormían | dormiré dormirás dormirá dormiremos dormirán | durmiendo
jugar: juego juegas juega jugamos juegan | jugué jugaste jugó jugamos jugaron |
    jugaba jugabas jugaba jugábamos jugaban | jugaré jugarás jugará jugaremos jugarán | jugando
volver: vuelvo vuelves vuelve volvemos vuelven | volví volviste volvió volvimos volvieron |
    volvía volvías volvía volvíamos volvían | volveré volverás volverá volveremos volverán | volviendo
perder: pierdo pierdes pierde perdemos pierden | perdí perdiste perdió perdimos perdieron |
    perdía perdías perdía perdíamos perdían | perderé perderás perderá perderemos perderán | perdiendo
encontrar: encuentro encuentras encuentra encontramos encuentran | encontré encontraste encontró encontramos encontraron |
    encontraba encontrabas encontraba encontrábamos encontraban | encontraré encontrarás encontrará encontraremos encontrarán | encontrando
cerrar: cierro cierras cierra cerramos cierran | cerré cerraste cerró cerramos cerraron |
    cerraba cerrabas cerraba cerrábamos cerraban | cerraré cerrarás cerrará cerraremos cerrarán | cerrando
buscar: busco buscas busca buscamos buscan | busqué buscaste buscó buscamos buscaron |
    buscaba buscabas buscaba buscábamos buscaban | buscaré buscarás buscará buscaremos buscarán | buscando
llegar: llego llegas llega llegamos llegan | llegué llegaste llegó llegamos llegaron |
    llegaba llegabas llegaba llegábamos llegaban | llegaré llegarás llegará llegaremos llegarán | llegando
comer: como comes come comemos comen | comí comiste comió comimos comieron |
    comía comías comía comíamos comían | comeré comerás comerá comeremos comerán | comiendo
vivir: vivo vives vive vivimos viven | viví viviste vivió vivimos vivieron |
    vivía vivías vivía vivíamos vivían | viviré vivirás vivirá viviremos vivirán | viviendo
comprar: compro compras compra compramos compran | compré compraste compró compramos compraron |
    compraba comprabas compraba comprábamos compraban | compraré comprarás comprará compraremos comprarán | comprando
"""


def verbs() -> Iterator[tuple[str, dict[tuple[str, str], str], str]]:
    """Each verb with its forms by tense and person, and its gerund."""
    for entry in _TABLE.replace("|\n", "|").strip().splitlines():
        verb, rest = entry.split(": ")
        *columns, gerund = (" ".join(column.split()) for column in rest.split("|"))
        assert [len(column.split()) for column in columns] == [5, 5, 5, 5]
        forms = [(tense, person) for tense in TENSES for person in PERSONS]
        yield verb, dict(zip(forms, " ".join(columns).split())), gerund


FORMS = {verb: forms for verb, forms, _ in verbs()}
