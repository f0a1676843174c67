# SPDX-License-Identifier: MIT
"""SQLite: a database in memory, filled, indexed, joined and searched by its shell."""
from pathlib import Path

from hakmem_lab.apps import App, BadOutput, Dice, Inputs, Stage, digest

QUERIES = """
CREATE INDEX by_customer ON orders(customer);
CREATE INDEX by_item ON orders(item, amount);
CREATE INDEX by_city ON customers(city, name);
SELECT city, count(*), sum(amount), max(note) FROM orders JOIN customers ON customers.id = customer
  GROUP BY city ORDER BY city;
SELECT item, group_concat(DISTINCT substr(note, 1, 6)) FROM orders WHERE amount > 950 GROUP BY item ORDER BY item;
WITH words AS (SELECT upper(trim(substr(note, instr(note, ' ') + 1, 12))) AS word FROM orders)
  SELECT word, count(*) AS n FROM words GROUP BY word ORDER BY n DESC, word LIMIT 200;
SELECT a.id, b.id, a.note || '/' || b.note FROM orders a JOIN orders b ON a.item = b.item AND a.amount = b.amount
  AND a.id < b.id WHERE a.item % 17 = 3 ORDER BY a.id, b.id LIMIT 3000;
UPDATE orders SET note = replace(note, 'an', 'ANN') || printf(' %06d', id) WHERE id % 3 = 0;
DELETE FROM orders WHERE id % 5 = 1;
SELECT json_group_array(json_object('id', id, 'note', note)) FROM orders WHERE customer % 50 = 7;
SELECT customer, sum(amount) OVER (PARTITION BY customer ORDER BY id) FROM orders WHERE customer < 100
  ORDER BY customer, id;
SELECT count(*), sum(length(note)), sum(amount) FROM orders;
PRAGMA integrity_check;
"""


def statements(orders: int):
    dice = Dice(7)
    customers = max(10, orders // 20)
    yield "PRAGMA temp_store = MEMORY;\nBEGIN;"
    yield "CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT, city TEXT);"
    yield "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INT, item INT, amount INT, note TEXT);"
    cities = [dice.word(4) for _ in range(150)]
    for number in range(customers):
        yield f"INSERT INTO customers VALUES({number}, '{dice.word(4)} {dice.word(3)}', '{dice.pick(cities)}');"
    for number in range(orders):
        note = dice.text(dice.between(10, 90))
        yield (f"INSERT INTO orders VALUES({number}, {dice.below(customers)}, {dice.below(400)}, {dice.below(1000)}, "
               f"'{note}');")
    yield "COMMIT;" + QUERIES


class Sqlite(App):
    name = "sqlite"
    title = "SQLite, a database in memory"
    text = "The sqlite3 shell reads inserts one by one, then indexes, joins, groups, changes and deletes."
    programs = ("sqlite3",)
    packages = ("sqlite3",)
    metric = "cpu"
    quick = True

    def prepare(self, work: Path, scale: float) -> None:
        orders = self.count(60000, scale)
        Inputs(self, work, scale).file("shop.sql", lambda path: path.write_text("\n".join(statements(orders))))

    def run(self, stage: Stage) -> str:
        done = stage.run(["sqlite3", "-batch", ":memory:"], stdin=stage.input("shop.sql"))
        if not done.stdout.endswith(b"\nok\n"):
            raise BadOutput("the integrity check does not say ok")
        return digest(done.stdout)
