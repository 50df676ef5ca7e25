/** The zone in which the page shows times: that of the server unless a cookie of the browser names another. */
import { cookieValue } from '../http/requests/cookies.ts'
import type { Client } from '../http/requests/forwarded-client.ts'
import { isTimeZone, zoneOffset } from '../system/calendar/time-zone.ts'
import { MINUTE, type Clock } from '../system/clock.ts'

const COOKIE = 'deferd-zone'
/** In seconds: a year. */
const KEPT_FOR = 31_536_000

/** Names of the tz database in place of which the engine lists former ones, such as Asia/Calcutta. */
const NEWER_NAMES = [
  'Africa/Asmara',
  'America/Argentina/Buenos_Aires',
  'America/Argentina/Catamarca',
  'America/Argentina/Cordoba',
  'America/Argentina/Jujuy',
  'America/Argentina/Mendoza',
  'America/Atikokan',
  'America/Indiana/Indianapolis',
  'America/Kentucky/Louisville',
  'America/Nuuk',
  'Asia/Ho_Chi_Minh',
  'Asia/Kathmandu',
  'Asia/Kolkata',
  'Asia/Yangon',
  'Atlantic/Faroe',
  'Europe/Kyiv',
  'Pacific/Chuuk',
  'Pacific/Kanton',
  'Pacific/Pohnpei',
]

/** The zones that may be chosen; browsers cannot name others, so that their number is limited. */
let known: ReadonlySet<string> | null = null

export function zoneNames(): ReadonlySet<string> {
  known ??= new Set(['UTC', ...[...Intl.supportedValuesOf('timeZone'), ...NEWER_NAMES].filter(isTimeZone).toSorted()])
  return known
}

/** The zone that a request names in its cookie; null for that of the server. */
export function chosenZone(cookies: string | undefined): string | null {
  const name = cookieValue(cookies, COOKIE)
  return name !== null && (name === 'UTC' || zoneNames().has(name)) ? name : null
}

/** Offsets of a zone; null for the zone of the server. */
export const zoneClock = (server: Pick<Clock, 'zone'>, name: string | null): Pick<Clock, 'zone'> =>
  name === null ? server : { zone: (at) => ({ offset: zoneOffset(name, at) / MINUTE, name }) }

/** Field Set-Cookie that keeps a zone for a year; null for the zone of the server. */
export const zoneCookie = ({ scheme }: Pick<Client, 'scheme'>, name: string | null): string =>
  [
    `${COOKIE}=${name ?? ''}`,
    `Max-Age=${name === null ? 0 : KEPT_FOR}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    ...(scheme === 'https' ? ['Secure'] : []),
  ].join('; ')
