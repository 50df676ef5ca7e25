/**
 * SQL of PostgreSQL for the reads of both engines (sql/spelling.ts). Plans do not depend on statistics: rows are found by `id = any (…)`,
 * and a subquery with `offset 0` is planned by itself.
 */
import type { DestinationName } from '../../mail/message.ts'
import { messageIdOf, recipientRange } from '../sql/id-ranges.ts'
import { SHARDS } from '../membership/shards.ts'
import { THEIRS } from '../sql/message-selection.ts'
import { rowOf, statement, type Query, type Read } from '../sql/read.ts'
import type { SearchTerm } from '../search/search-terms.ts'
import type { Place, PlaceOf, Spelling } from '../sql/spelling.ts'
import { shardUnder } from '../membership/shard-keys.ts'
import type { Member } from './provider-queries.ts'
import { int2s, int8s } from './session/arrays.ts'
import { isOdd, matches, normalForm, patternParameter } from './session/patterns.ts'
import { DUE_INDEX, earliestDueAt } from './writing/queries.ts'

export const POSTGRES: Spelling = {
  pattern: patternParameter,
  matches,
  contains: (text, part) => `position(${part} in ${text}) > 0`,
  isOdd,
  normalForm,
  lastOutcome: 'r.last::json',
  isReadable: `position('\\u0000' in r.last) = 0`,
  replyStatus: (reply) => String.raw`substring(${reply} from '^[0-9]{3}[ -]([245]\.[0-9]{1,3}\.[0-9]{1,3})(?: |$)')`,
  among: (id, ids, add) => `${id} = any (${add(int8s(ids))}::bigint[])`,
  withLive: (condition, { after, through }, add) =>
    `message.id > ${add(after)} and message.id <= ${add(through)}
      and exists (select 1 from recipient r where ${THEIRS} and r.settled_at is null and ${condition})`,
  leased: `message.id = any (array(select ${messageIdOf('id')} from recipient where leased_by is not null))`,
  scheduled: 'message.id in (select id from message where scheduled)',
  scheduledIds: 'select id from message where scheduled offset 0',
  aside: null,
  trash: 'message',
  fence: 'offset 0',
  ownMessage: `cross join lateral (select * from message where message.id = ${messageIdOf('r.id')} offset 0) message`,
  ownRecipients: `cross join lateral (select * from recipient r where r.id ${recipientRange('found.id')} offset 0) r`,
  firstDeparture: (since, add) => `
    select min(seq) as seq from (select seq from history where left_at >= ${add(since)} order by left_at limit 10000) late`,
  expiring: (before, most, add) => `
    select cast(coalesce(sum(found), 0) as bigint) as found from shard s cross join lateral (
      select count(*) as found from (select 1 from recipient r
        where r.shard = s.id and r.state = 'waiting' and r.expires_at < ${add(before)} limit ${add(most)}) first) counted`,
  messagesWith: (terms, below, limit, add) => {
    const [asked, before, most] = [`${add(terms.map(queryOf).join(' & '))}::tsquery`, add(below), add(limit)]
    const among = (newest: number): string =>
      `(select id, terms from search where id < ${before} order by id desc limit ${newest}) newest where terms @@ ${asked}`
    return `
      with probe as materialized (select count(*) as found from ${among(PROBED)}),
        walk as materialized (
          select id from ${among(WALKED)} and (select found from probe) >= ${COMMON} order by id desc limit ${most})
      select ${messageIdOf('id')} as message from (
        select id from walk where (select count(*) from walk) >= ${most}
        union all select id from entries_with(${asked}) id where id < ${before} and (select count(*) from walk) < ${most}) found
      order by id desc limit ${most}`
  },
  busyDestinations: (after, limit, add) => {
    const name = add(after)
    return `
      with recursive walk (shard, destination) as (
        select s, ${nextBusy('s', name)} from generate_series(0, ${SHARDS - 1}) s
        union all
        select walk.shard, ${nextBusy('walk.shard', 'walk.destination')} from walk where walk.destination is not null)
      select destination from walk where destination is not null
      union select destination from recipient where leased_by is not null and destination > ${name}
      order by destination limit ${add(limit)}`
  },
}

/**
 * The index returns the entries of a term in no order, so that a page of a common one would sort them all: 1.4 s for a million. A term that
 * COMMON of the newest PROBED entries have is looked for in the newest WALKED, newest first, until the page is full.
 */
const PROBED = 512
const COMMON = 4
const WALKED = 65_536

const queryOf = ({ text, isPrefix }: SearchTerm): string => `'${text.replaceAll(/(['\\])/g, '$1$1')}'${isPrefix ? ':*' : ''}`

/** The first destination of a shard with waiting mail behind another. */
const nextBusy = (shard: string, after: string): string => `
  (select r.destination from recipient r where r.shard = ${shard} and r.destination > ${after} and ${DUE_INDEX}
    order by r.destination limit 1)`

const shardsOfOne = (destination: DestinationName): Query =>
  statement((add) => `select provider, to_json(moves_from) as "movesFrom" from provider_member where destination = ${add(destination)}`)

/** Finds the recipients at a destination by its shards and its name. A second shard has mail that follows after a change of the provider. */
export function* place(destination: DestinationName): Read<PlaceOf> {
  const member = yield* rowOf<Pick<Member, 'provider' | 'movesFrom'>>(shardsOfOne(destination))
  const shards = int2s([shardUnder(destination, member?.provider ?? null), ...(member?.movesFrom ?? [])])
  return (add) => placeOf(add(shards), add(destination))
}

function placeOf(shards: string, destination: string): Place {
  const inShards = (column: 'id' | 'due_at', condition: string): string =>
    `(select r.${column} from unnest(${shards}::smallint[]) own (shard) cross join lateral (
      select r.${column} from recipient r where r.shard = own.shard and r.destination = ${destination} and ${condition} offset 0) r)`
  return {
    // The order is that of the index, and makes the planner choose it.
    due: inShards('id', `${DUE_INDEX} order by r.band, r.due_at`),
    suspect: inShards('id', `r.state = 'waiting' and r.suspect order by r.due_at`),
    leased: `(select id from recipient where leased_by is not null and destination = ${destination} offset 0)`,
    parked: inShards('id', `r.state = 'parked'`),
    nextDueAt: `(select min(due_at) from (select ${earliestDueAt('own.shard', destination)} as due_at from unnest(${shards}::smallint[]) own (shard)) first)`,
  }
}
