/** Rows of providers: their destinations, and the effects of reply rules. */
import type { Database } from 'better-sqlite3'
import type { DestinationName } from '../../../mail/message.ts'
import type { ProviderMember, ProviderRecord, RuleEffect } from '../../provider-state.ts'

const join =
  'insert into provider_member (destination, provider) values (?, ?) on conflict (destination) do update set provider = excluded.provider'
const leave = 'delete from provider_member where destination = ?'
const providerOfOne = 'select provider from provider_member where destination = ?'
const allMembers = 'select destination, provider from provider_member order by destination'
const save = 'insert into provider (name, effects) values (?, ?) on conflict (name) do update set effects = excluded.effects'
const forget = 'delete from provider where name = ?'
const allProviders = 'select name, effects from provider order by name'

export class ProviderRows {
  readonly #db: Database
  readonly #join
  readonly #leave
  readonly #save
  readonly #forget

  constructor(db: Database) {
    this.#db = db
    this.#join = db.prepare<[string, string]>(join)
    this.#leave = db.prepare<[string]>(leave)
    this.#save = db.prepare<[string, string]>(save)
    this.#forget = db.prepare<[string]>(forget)
  }

  joinProvider(destination: DestinationName, provider: string | null): void {
    if (provider === null) this.#leave.run(destination)
    else this.#join.run(destination, provider)
  }

  saveProvider({ provider, effects }: ProviderRecord): void {
    if (effects.length === 0) this.#forget.run(provider)
    else this.#save.run(provider, JSON.stringify(effects))
  }

  providerMembers(): ProviderMember[] {
    return providerMembers(this.#db)
  }

  providers(): ProviderRecord[] {
    return providerRecords(this.#db)
  }
}

export const providerMembers = (db: Database): ProviderMember[] => db.prepare<[], ProviderMember>(allMembers).all()

export const providerOf = (db: Database, destination: DestinationName): string | null =>
  db.prepare<[string], string>(providerOfOne).pluck().get(destination) ?? null

export const providerRecords = (db: Database): ProviderRecord[] =>
  db
    .prepare<[], { name: string; effects: string }>(allProviders)
    .all()
    .map(({ name, effects }) => ({ provider: name, effects: JSON.parse(effects) as RuleEffect[] }))
