/** Device codes of an authorization server (RFC 8628). */
import { SECOND, type Duration, type WallTime } from '../../system/clock.ts'
import type { Cause } from './refusal.ts'

/** A device that waits for the login of a person. */
export interface DeviceLogin {
  /** Code that the person enters: `ABCD-EFGH`. */
  readonly userCode: string
  readonly client: string
  readonly scope: string
  readonly state: 'pending' | 'approved' | 'denied' | 'redeemed'
}

interface Entry {
  login: DeviceLogin
  readonly endsAt: WallTime
  interval: Duration
  polledAt: WallTime | null
  user: string
}

type Poll =
  | { readonly kind: 'approved'; readonly login: DeviceLogin; readonly user: string }
  | { readonly kind: 'refused'; readonly cause: Cause }

const refused = (cause: Cause): Poll => ({ kind: 'refused', cause })
/** `slow_down` lengthens the interval by this time (RFC 8628 §3.5). */
const SLOWER: Duration = 5 * SECOND

export class DeviceLogins {
  readonly #byDevice = new Map<string, Entry>()

  begin(deviceCode: string, login: Omit<DeviceLogin, 'state'>, terms: { readonly endsAt: WallTime; readonly interval: Duration }): void {
    this.#byDevice.set(deviceCode, { login: { ...login, state: 'pending' }, ...terms, polledAt: null, user: '' })
  }

  list(): readonly DeviceLogin[] {
    return [...this.#byDevice.values()].map(({ login }) => login)
  }

  /** Decides a pending login; false for a code that is unknown, decided or past its end. A null user denies. */
  decide(userCode: string, user: string | null, now: WallTime): boolean {
    const wanted = plain(userCode)
    const entry = [...this.#byDevice.values()].find(({ login }) => plain(login.userCode) === wanted)
    if (entry === undefined || entry.login.state !== 'pending' || now >= entry.endsAt) return false
    entry.login = { ...entry.login, state: user === null ? 'denied' : 'approved' }
    entry.user = user ?? ''
    return true
  }

  poll(deviceCode: string, client: string, now: WallTime): Poll {
    const entry = this.#byDevice.get(deviceCode)
    if (entry === undefined || entry.login.client !== client || entry.login.state === 'redeemed') return refused('unknown code')
    const { polledAt, interval, login } = entry
    entry.polledAt = now
    if (now >= entry.endsAt) return refused('code expired')
    if (polledAt !== null && now - polledAt < interval) {
      entry.interval += SLOWER
      return refused('too many polls')
    }
    if (login.state === 'pending') return refused('login pending')
    if (login.state === 'denied') return refused('login denied')
    entry.login = { ...login, state: 'redeemed' }
    return { kind: 'approved', login, user: entry.user }
  }
}

/** A code as people type it: case and hyphens do not matter. */
const plain = (code: string): string => code.toUpperCase().replaceAll(/[^A-Z0-9]/g, '')
