-- SPDX-License-Identifier: MIT
-- Balances after pgbench agree with its history; then sorts, joins, JSON, parallel and compiled
-- queries, PL/pgSQL.
with history as (select sum(delta) as total from pgbench_history)
select (select sum(abalance) from pgbench_accounts) = total as accounts,
       (select sum(bbalance) from pgbench_branches) = total as branches,
       (select sum(tbalance) from pgbench_tellers) = total as tellers
  from history;
select count(*), sum(delta), min(aid), max(aid) from pgbench_history;

create table item as
  select i as id, 'name ' || (i * 7919 % 613) as name, repeat('x', i % 200) || i as body
  from generate_series(1, 100000) i;
create index on item (name);
analyze item;
set work_mem = '256kB';
select name, count(*), sum(id), md5(string_agg(body, ',' order by id))
  from item group by name order by name limit 10;
select md5(string_agg(body, '' order by body desc, id)) from item;
set work_mem = '64MB';
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
select count(*), sum(length(a.body))
  from item a join item b on a.id = b.id + 1 where a.name < b.name;
set jit_above_cost = 0;
set jit_inline_above_cost = 0;
set jit_optimize_above_cost = 0;
select count(*), sum(id * 2 + length(name)) from item where id % 7 in (1, 2, 3) and name like '%1%';
reset all;
select jsonb_agg(jsonb_build_object('id', id, 'tags', array[name, left(body, 5)]) order by id) -> 77
  from item where id < 2000;
select count(distinct w)
  from (select regexp_split_to_table(body || ' ' || name, '[x ]+') as w
          from item where id < 20000) s;
with recursive tree(n, path) as (
  select 1, '1'::text union all select n + 1, path || '.' || n from tree where n < 1000)
select length(path) from tree order by n desc limit 1;
do $$
declare
  total bigint := 0;
  kept text[] := '{}';
begin
  for round in 1..2000 loop
    kept := array_append(kept, repeat('k', round % 300));
    begin
      total := total + 100 / (round % 10);
    exception when division_by_zero then
      total := total - 1;
    end;
  end loop;
  raise notice 'total % length %', total, length(array_to_string(kept, ''));
end $$;
begin;
delete from item where id % 2 = 0;
update item set body = body || 'updated' where id % 3 = 0;
commit;
vacuum full item;
select count(*), sum(length(body)) from item;
-- The order of rows on disk depends on autovacuum: leave a table whose order does not.
create table kept as select * from item order by id;
drop table item;
