/** SQL of SQLite for the reads of both engines (sql/spelling.ts). Plans are named by `indexed by` and `cross join`. */
import { likePattern } from '../../../patterns/filter-pattern.ts'
import { messageIdOf, recipientRange } from '../../sql/id-ranges.ts'
import type { Add, Read } from '../../sql/read.ts'
import type { Place, PlaceOf, Spelling } from '../../sql/spelling.ts'
import { DUE_INDEX, earliestDueAt } from '../writing/queries.ts'
import { like } from '../records/record-calls.ts'
import { matchOf, type SearchTable } from '../search/search-queries.ts'

const WAITING = `recipient indexed by recipient_due where ${DUE_INDEX}`
const SCHEDULED = 'select id from message indexed by message_scheduled where scheduled = 1'
const LEASED = `recipient indexed by recipient_leased where state = 'leased'`

/** The first destination with waiting mail behind another. */
const nextBusy = (after: string): string => `(select destination from ${WAITING} and destination > ${after} order by destination limit 1)`

export const SQLITE: Spelling = {
  pattern: likePattern,
  matches: like,
  contains: (text, part) => `instr(${text}, ${part}) > 0`,
  isOdd: (address) =>
    `(instr(${address}, '"') = 1 or instr(${address}, '.') = 1 or instr(${address}, '..') > 0 or instr(${address}, '.@') > 0 or ${address} glob '*@*@*')`,
  normalForm: (address) => `normal_address(${address})`,
  lastOutcome: 'r.last',
  isReadable: 'json_valid(r.last)',
  replyStatus: (reply) => `reply_status(${reply})`,
  among: (id, ids, add) => `${id} in (select value from json_each(${add(JSON.stringify(ids))}))`,
  // One range of recipients takes less time than a search for each message.
  withLive: (condition, { after, through }, add) =>
    `message.id in (select ${messageIdOf('r.id')} from recipient r
      where r.id ${recipientRange(`(${add(after)} + 1)`, add(through))} and r.settled_at is null and ${condition})`,
  leased: `message.id in (select ${messageIdOf('id')} from ${LEASED})`,
  scheduled: `message.id in (${SCHEDULED})`,
  scheduledIds: SCHEDULED,
  aside: 'message indexed by message_aside',
  trash: 'message indexed by message_trash',
  fence: '',
  ownMessage: `cross join message on message.id = ${messageIdOf('r.id')}`,
  ownRecipients: `cross join recipient r on r.id ${recipientRange('found.id')}`,
  // Reads the entries of the index from that time on.
  firstDeparture: (since, add) => `select min(seq) as seq from history indexed by history_left where left_at >= ${add(since)}`,
  expiring: (before, most, add) => `
    select count(*) as found from (
      select 1 from recipient indexed by recipient_expiry where state = 'waiting' and expires_at < ${add(before)} limit +${add(most)})`,
  // FTS5 begins at a row number that is an integer, and else reads all rows: numbers are bound as real ones.
  messagesWith: (terms, below, limit, add) => {
    const [match, before, most] = [add(terms.map(matchOf).join(' AND ')), add(below), add(limit)]
    const entriesIn = (table: SearchTable): string =>
      `select id from (select rowid as id from ${table} where ${table} match ${match} and rowid < cast(${before} as integer) order by rowid desc limit ${most})`
    return `
      select ${messageIdOf('id')} as message from (${entriesIn('search_0')} union all ${entriesIn('search_1')})
      order by id desc limit ${most}`
  },
  busyDestinations: (after, limit, add) => {
    const [name, most] = [add(after), add(limit)]
    return `
      with recursive walk (destination) as (
        select ${nextBusy(name)} union all select ${nextBusy('walk.destination')} from walk where walk.destination is not null limit ${most})
      select destination from walk where destination is not null
      union select destination from ${LEASED} and destination > ${name} order by destination limit ${most}`
  },
}

/** Finds the recipients at a destination by its name alone. */
// eslint-disable-next-line require-yield
export function* place(destination: string): Read<PlaceOf> {
  return (add) => placeOf(destination, add)
}

function placeOf(destination: string, add: Add): Place {
  const name = add(destination)
  const there = `destination = ${name}`
  return {
    due: `select id from ${WAITING} and ${there}`,
    suspect: `select id from recipient indexed by recipient_suspect where state = 'waiting' and suspect = 1 and ${there}`,
    leased: `select id from ${LEASED} and ${there}`,
    parked: `select id from recipient indexed by recipient_parked where state = 'parked' and ${there}`,
    nextDueAt: earliestDueAt(name),
  }
}
