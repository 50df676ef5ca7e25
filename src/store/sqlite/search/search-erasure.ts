/**
 * Erases addresses in the index of messages that the history has forgotten: entries of them stay until their whole table is emptied. Entries of
 * the history are written anew when its records are changed, and those of live mail stay.
 */
import type { Database, Statement } from 'better-sqlite3'
import { messageOf, type RecipientId } from '../../../mail/message.ts'
import * as sql from './search-queries.ts'
import { SEARCH_TABLES, type SearchTable } from './search-queries.ts'

/** Terms, and entries of a term, that a slice reads at most. */
const TERMS = 500
const ENTRIES = 200

/** Begin of a slice: the number of the table, the last term that is done, and the term whose entries up to one are done. */
interface Place {
  readonly table: number
  readonly term: string
  readonly within: readonly [term: string, row: RecipientId] | null
}

interface TableStatements {
  readonly terms: Statement<[string, number], string>
  readonly entries: Statement<[string, RecipientId, number], RecipientId>
  readonly remove: Statement<[number, string]>
}

const FIRST: Place = { table: 0, term: sql.FIRST_ADDRESS, within: null }

export class SearchErasure {
  readonly #statements: readonly TableStatements[]
  readonly #isKnown

  constructor(db: Database) {
    const prepared = (table: SearchTable): TableStatements => {
      db.exec(sql.createVocabulary(table))
      return {
        terms: db.prepare<[string, number], string>(sql.addressTerms(table)).pluck(),
        entries: db.prepare<[string, RecipientId, number], RecipientId>(sql.entriesWith(table)).pluck(),
        remove: db.prepare<[number, string]>(sql.deleteEntry(table)),
      }
    }
    this.#statements = SEARCH_TABLES.map(prepared)
    this.#isKnown = db.prepare<{ message: number }>(sql.isKnownMessage)
  }

  /** Erases a slice of the terms of matching addresses. Returns where the next one begins; null after the last. */
  slice(isErased: (address: string) => boolean, after: string | null): string | null {
    const place = after === null ? FIRST : (JSON.parse(after) as Place)
    const table = this.#statements[place.table]
    if (table === undefined) return null
    if (place.within !== null) return JSON.stringify(this.#remove(table, place, place.within))
    const terms = table.terms.all(place.term, TERMS)
    for (const term of terms) {
      if (!isErased(term.slice(sql.FIRST_ADDRESS.length))) continue
      return JSON.stringify(this.#remove(table, { ...place, term }, [term, 0]))
    }
    const last = terms.at(-1)
    const isLast = last === undefined || terms.length < TERMS
    return JSON.stringify(isLast ? { ...FIRST, table: place.table + 1 } : { ...place, term: last })
  }

  #remove({ entries, remove }: TableStatements, place: Place, [term, from]: readonly [string, RecipientId]): Place {
    const rows = entries.all(sql.matchOf({ text: term, isPrefix: false }), from, ENTRIES)
    for (const row of rows) if (this.#isKnown.get({ message: messageOf(row) }) === undefined) remove.run(row, term)
    const last = rows.at(-1)
    return { ...place, within: rows.length < ENTRIES || last === undefined ? null : [term, last] }
  }
}
