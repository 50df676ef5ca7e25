/** Answers of the simulated DNS: those of a fault, and their names in events. */
import type { Lookup } from '../../system/net.ts'
import type { DnsFault } from './rule.ts'

/** Answer of a lookup at which a fault acts. `nullRecords` are the records of a null MX (RFC 7505). */
export function failedLookup<T>(fault: DnsFault, nullRecords: readonly T[]): Lookup<T> {
  switch (fault) {
    case 'nxdomain':
      return { kind: 'none', nxdomain: true }
    case 'no-data':
      return { kind: 'none', nxdomain: false }
    case 'null-mx':
      return nullRecords.length > 0 ? { kind: 'found', records: nullRecords } : { kind: 'none', nxdomain: false }
    case 'servfail':
      return { kind: 'failed', soft: true, reason: 'SERVFAIL' }
    case 'timeout':
      return { kind: 'failed', soft: true, reason: 'timeout' }
    case 'refused':
      return { kind: 'failed', soft: false, reason: 'REFUSED' }
  }
}

/** The records of an answer, or the reason why there are none. */
export function answerInWords<T>(answer: Lookup<T>): string {
  switch (answer.kind) {
    case 'found':
      return answer.records.map((record) => (typeof record === 'string' ? record : JSON.stringify(record))).join(', ')
    case 'none':
      return answer.nxdomain ? 'NXDOMAIN' : 'no data'
    case 'failed':
      return answer.reason
  }
}
