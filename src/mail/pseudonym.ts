/** Texts that stand for addresses. Equal addresses of a queue have equal ones, which tell nothing about an address without the key of the queue. */
import { createHmac } from 'node:crypto'
import { normalizeAddress } from './address.ts'

const PSEUDONYM = /^erased-[0-9a-f]{8}$/

export const isPseudonym = (text: string): boolean => PSEUDONYM.test(text)

/** For example `erased-1f0c9a3b`. The case of an address makes no difference. */
export const pseudonymOf = (key: string, address: string): string =>
  `erased-${createHmac('sha256', key).update(normalizeAddress(address).toLowerCase()).digest('hex').slice(0, 8)}`
