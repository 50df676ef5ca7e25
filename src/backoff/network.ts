/** Retry policies that networks use: Ethernet, TCP, QUIC, and Thain's rule for distributed systems. */
import { HOUR, MINUTE, SECOND } from '../system/clock.ts'
import { count, formula, number, time } from './policy.ts'
import { doubled } from './plain.ts'

/**
 * ethernet — truncated binary exponential backoff: after the n-th collision wait r slots, r drawn from 0 … 2^min(n,10) − 1.
 * Defaults: slot 51.2 µs (512 bit times at 10 Mbit/s), truncated at 10, ends after 16 attempts. Full jitter.
 * Source: IEEE 802.3, CSMA/CD.
 */
export const ethernet = formula({
  about: 'a random number of slots from a range that doubles ten times',
  source: 'IEEE 802.3, CSMA/CD',
  parameters: {
    slot: time(0.0512, 'one slot'),
    truncate: count(10, 'doublings of the range', 1),
    tries: count(16, 'attempts in all', 1),
  },
  base: 'slot',
  wait: ({ slot, truncate, tries }, { step, draw }) => slot * Math.floor(draw() * 2 ** Math.min(step, truncate, tries)),
  ends: ({ tries }, { step }) => step >= tries,
})

/**
 * wifi — the contention window of wireless networks: a random number of slots from 0 … CW, where CW is CWmin before the first attempt, and
 * after each failed one the next of the series 2·CW + 1, up to CWmax.
 * Defaults: slot 9 µs, CWmin 15 (31 with direct sequence, whose slot is 20 µs), CWmax 1023, ends after 7 attempts (dot11ShortRetryLimit).
 * Full jitter.
 * Source: IEEE 802.11, CSMA/CA.
 */
export const wifi = formula({
  about: 'a random number of slots from a window that doubles from 15 to 1023',
  source: 'IEEE 802.11, CSMA/CA',
  parameters: {
    slot: time(0.009, 'one slot'),
    CWmin: count(15, 'the window before the first attempt, in slots; 31 with direct sequence', 1),
    CWmax: count(1023, 'the largest window, in slots', 1),
    tries: count(7, 'attempts in all', 1),
  },
  base: 'slot',
  wait: ({ slot, CWmin, CWmax, tries }, { step, draw }) =>
    slot * Math.floor(draw() * Math.min((CWmin + 1) * 2 ** Math.min(step, tries), CWmax + 1)),
  ends: ({ tries }, { step }) => step >= tries,
})

/**
 * thain — min(R·T·F^N, M) with R drawn from [1, 2): never earlier than plain backoff. N is 0 for the first wait.
 * Defaults: T 5 min, F 2, M 4 h (T: the longest time that an answer normally takes; M: as small as the clients need).
 * Source: D. Thain, "Exponential Backoff in Distributed Systems", 2009.
 */
export const thain = formula({
  about: 'min(R·T·F^N, M), R random from 1 to 2',
  source: 'D. Thain, 2009',
  parameters: {
    T: time(5 * MINUTE, 'the first wait'),
    F: number(2, 'the factor', 1),
    M: time(4 * HOUR, 'the longest wait'),
  },
  base: 'T',
  cap: 'M',
  wait: ({ T, F, M }, { step, draw }) => Math.min((1 + draw()) * T * F ** (step - 1), M),
})

/** Multipliers of the retransmission timeout of NetBSD's TCP; after the thirteenth wait the connection is dropped. */
const TCP_BACKOFF = [1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64, 64] as const

/**
 * tcp — the n-th retransmission timeout is RTO times the n-th entry of {1, 2, 4, 8, 16, 32, 64 ×7}; after the last one, the
 * connection is dropped.
 * Default: RTO 1 s. Not random. Literal in a queue.
 * Source: NetBSD, tcp_timer.c.
 */
export const tcp = formula({
  about: "TCP's retransmission table, 1 s to 64 s",
  source: 'NetBSD, tcp_timer.c',
  parameters: { RTO: time(SECOND, 'the first timeout') },
  literal: true,
  wait: ({ RTO }, { step }) => RTO * (TCP_BACKOFF[Math.min(step, TCP_BACKOFF.length) - 1] ?? 64),
  ends: (_, { step }) => step > TCP_BACKOFF.length,
})

/**
 * quic — the probe timeout, doubled with each consecutive timeout: PTO·2^min(n−1, shifts).
 * Defaults: PTO 999 ms (srtt 333 ms + 4·rttvar of 166.5 ms), shifts 16. Not random.
 * Source: RFC 9002, sections 6.2.1 and 6.2.2; the RFC sets no limit to the doublings.
 */
export const quic = formula({
  about: "QUIC's probe timeout, doubled each time",
  source: 'RFC 9002, section 6.2',
  parameters: { PTO: time(999, 'the first timeout'), shifts: count(16, 'the most doublings') },
  base: 'PTO',
  wait: ({ PTO, shifts }, { step }) => doubled(PTO, Math.min(step - 1, shifts), Infinity),
})
