/**
 * What one client address may do at once and in a while (postfix anvil). Addresses are forgotten as soon as nothing
 * about them is worth remembering, so that many clients cost no more than those that are here.
 */
import type { SmtpReply } from '../mail/reply.ts'
import { shownOut } from './replies.ts'

export interface ClientLimitSettings {
  readonly myhostname: string
  /** 0 for no limit. */
  readonly smtpd_client_connection_count_limit: number
}

export class ClientLimits {
  readonly #settings: ClientLimitSettings
  readonly #connections = new Map<string, number>()

  constructor(settings: ClientLimitSettings) {
    this.#settings = settings
  }

  /** Counts a connection in; the reply when it is one too many. Every `enter` has its `leave`. */
  enter(address: string, trusted: boolean): SmtpReply | undefined {
    const { myhostname, smtpd_client_connection_count_limit: limit } = this.#settings
    const count = (this.#connections.get(address) ?? 0) + 1
    this.#connections.set(address, count)
    return limit > 0 && count > limit && !trusted ? shownOut('4.7.0', myhostname, `Error: too many connections from ${address}`) : undefined
  }

  leave(address: string): void {
    const count = (this.#connections.get(address) ?? 0) - 1
    if (count > 0) this.#connections.set(address, count)
    else this.#connections.delete(address)
  }
}
