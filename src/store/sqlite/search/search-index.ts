/**
 * Writes the entries of the index by which messages are found. New entries go to one of two tables. When queue and history have few messages
 * of the other table, beside those that came since, their entries are copied in slices; then that table is emptied, and gets the new entries.
 */
import type { Database } from 'better-sqlite3'
import { recipientId, type MessageId } from '../../../mail/message.ts'
import { decodeHistory } from '../../history-record.ts'
import { ADDRESSES_PER_ENTRY, entriesOf } from '../../search/search-terms.ts'
import * as sql from './search-queries.ts'

/** Maximum number of messages, and of addresses, per slice. A slice takes a few milliseconds. */
const SLICE = 250
const ADDRESSES = 1_000

/** Number of ids given since the change of tables for each message whose entries are copied at the next one. */
const IDS_PER_COPY = 10

interface SearchedRow {
  readonly sender: string
  readonly message_id: string | null
  readonly subject: string | null
}

interface SearchState {
  readonly current: 0 | 1
  readonly former: MessageId
  readonly last: MessageId
  readonly copied: MessageId
}

interface KnownRange {
  readonly after: MessageId
  readonly through: MessageId
  readonly limit: number
}

type Entries = readonly (readonly string[])[]

export class SearchIndex {
  readonly #unindexed
  readonly #indexedThrough
  readonly #anew
  readonly #message
  readonly #addresses
  readonly #records
  readonly #insert
  readonly #has
  readonly #delete
  readonly #empty
  readonly #state
  readonly #save
  readonly #known
  readonly #knownNumber
  /** Highest id of a message at which the number of messages of the former table is read again. */
  #countedAgainAt: MessageId = 0

  constructor(db: Database) {
    this.#unindexed = db.prepare<[number], MessageId>(sql.unindexed).pluck()
    this.#indexedThrough = db.prepare<[MessageId]>(sql.indexedThrough)
    this.#anew = db.prepare<[MessageId]>(sql.indexAnew)
    this.#message = db.prepare<[MessageId], SearchedRow>(sql.searchedMessage)
    this.#addresses = db.prepare<{ message: MessageId }, string>(sql.addressesOf).pluck()
    this.#records = db.prepare<[MessageId], string>(sql.recordsOfMessage).pluck()
    this.#insert = sql.SEARCH_TABLES.map((table) => db.prepare<[number, string]>(sql.insertEntry(table)))
    this.#has = sql.SEARCH_TABLES.map((table) => db.prepare<[string, number]>(sql.hasTerm(table)))
    this.#delete = sql.SEARCH_TABLES.map((table) => db.prepare<[number, string]>(sql.deleteEntry(table)))
    this.#empty = sql.SEARCH_TABLES.map((table) => db.prepare<[]>(sql.emptyEntries(table)))
    this.#state = db.prepare<[], SearchState>(sql.searchState)
    this.#save = db.prepare<[string, number]>(sql.saveSearchState)
    this.#known = db.prepare<KnownRange, MessageId>(sql.knownMessages).pluck()
    this.#knownNumber = db.prepare<KnownRange, number>(sql.numberKnown).pluck()
  }

  indexMail(): { readonly more: boolean } {
    const state = this.#state.get() ?? { current: 0, former: 0, last: 0, copied: 0 }
    const ids = this.#unindexed.all(SLICE)
    const last = this.#write(ids, (row, terms) => this.#insert[state.current]?.run(row, terms.join(' ')))
    if (last === undefined) return { more: this.#changeTable(state) }
    this.#indexedThrough.run(last)
    if (last > state.last) this.#save.run('search_last', last)
    return { more: ids.length === SLICE || last !== ids.at(-1) }
  }

  /** Has the entries of messages written, up to the limit of a slice. Returns the last message that has its entries. */
  #write(ids: readonly MessageId[], enter: (row: number, terms: readonly string[]) => void): MessageId | undefined {
    let last: MessageId | undefined
    let addresses = 0
    for (const message of ids) {
      if (addresses >= ADDRESSES) break
      const entries = this.#entriesOf(message)
      entries.forEach((terms, n) => enter(recipientId(message, n * ADDRESSES_PER_ENTRY), terms))
      addresses += entries.length === 1 ? 1 : entries.length * ADDRESSES_PER_ENTRY
      last = message
    }
    return last
  }

  /** The terms that an entry of a table has. */
  #present(table: 0 | 1, row: number, terms: readonly string[]): readonly string[] {
    return terms.filter((term) => this.#has[table]?.get(sql.matchOf({ text: term, isPrefix: false }), row) !== undefined)
  }

  /**
   * Deletes what the index has of a message, so that no page of the file has its terms. Called before its record is changed, in the same
   * transaction; the next `indexMail` writes entries of the changed record. Takes about 0.1 ms per address.
   */
  forget(message: MessageId): void {
    this.#entriesOf(message).forEach((terms, n) => {
      const row = recipientId(message, n * ADDRESSES_PER_ENTRY)
      for (const table of [0, 1] as const) {
        // The tables do not have a text of their own: terms that an entry does not have would damage them.
        const present = this.#present(table, row, terms)
        if (present.length > 0) this.#delete[table]?.run(row, present.join(' '))
      }
    })
    this.#anew.run(message)
  }

  /**
   * Copies entries of the former table, and at the end of the copy empties that table and has it get the new ones. Returns whether more is
   * to be done.
   */
  #changeTable(state: SearchState): boolean {
    const { current, former, last, copied } = state
    if (copied === 0 && !this.#isWorthACopy(state)) return false
    const through = this.#write(this.#known.all({ after: copied, through: former, limit: SLICE }), (row, terms) => {
      // A message whose record was changed has its entries in the new table already, all or none of an entry.
      if (this.#present(current, row, terms.slice(0, 1)).length === 0) this.#insert[current]?.run(row, terms.join(' '))
    })
    if (through !== undefined) {
      this.#save.run('search_copied', through)
      return true
    }
    const next = current === 0 ? 1 : 0
    this.#empty[next]?.run()
    this.#save.run('search_table', next)
    this.#save.run('search_former', last)
    this.#save.run('search_copied', 0)
    return false
  }

  /** Counts again after as many new messages as a count reads at most, so that counting costs the same per message with any queue. */
  #isWorthACopy({ former, last }: SearchState): boolean {
    if (last === former || last < this.#countedAgainAt) return false
    const most = Math.floor((last - former) / IDS_PER_COPY)
    const number = this.#knownNumber.get({ after: 0, through: former, limit: most + 1 }) ?? 0
    if (number > most) this.#countedAgainAt = last + most
    return number <= most
  }

  /** The entries of a message in the queue or in the history; none for mail without texts of its header. */
  #entriesOf(message: MessageId): Entries {
    const row = this.#message.get(message)
    if (row !== undefined) {
      const texts = { sender: row.sender, messageId: row.message_id ?? undefined, subject: row.subject ?? undefined }
      return entriesOf(texts, this.#addresses.all({ message }))
    }
    const gone = this.#records.all(message).map((record) => decodeHistory(message, record))
    const departed = gone.find((one) => one.message.fromHeader !== undefined)
    if (departed === undefined) return []
    return entriesOf(
      departed.message,
      departed.recipients.map(({ address }) => address),
    )
  }
}
