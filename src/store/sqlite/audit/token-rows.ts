/** Rows of access tokens. */
import type { Database } from 'better-sqlite3'
import type { QueueTime } from '../../../system/clock.ts'
import type { AccessToken } from '../../access-token.ts'
import * as sql from './audit-queries.ts'

type TokenRow = Omit<AccessToken, 'content'> & { readonly content: 0 | 1 }

const toToken = (row: TokenRow): AccessToken => ({ ...row, content: row.content === 1 })

export class TokenRows {
  readonly #insert
  readonly #delete
  readonly #use

  constructor(db: Database) {
    this.#insert = db.prepare<TokenRow>(sql.insertToken)
    this.#delete = db.prepare<[string]>(sql.deleteToken)
    this.#use = db.prepare<{ name: string; hour: QueueTime }>(sql.noteTokenUse)
  }

  addToken(token: AccessToken): boolean {
    return this.#insert.run({ ...token, content: token.content ? 1 : 0 }).changes > 0
  }

  removeToken(name: string): boolean {
    return this.#delete.run(name).changes > 0
  }

  tokenUsed(name: string, hour: QueueTime): void {
    this.#use.run({ name, hour })
  }
}

/** Reads access tokens. */
export class TokenSearch {
  readonly #all
  readonly #byHash

  constructor(db: Database) {
    this.#all = db.prepare<[], TokenRow>(sql.tokens)
    this.#byHash = db.prepare<[string], TokenRow>(sql.tokenByHash)
  }

  tokens(): AccessToken[] {
    return this.#all.all().map(toToken)
  }

  tokenByHash(hash: string): AccessToken | undefined {
    const row = this.#byHash.get(hash)
    return row === undefined ? undefined : toToken(row)
  }
}
