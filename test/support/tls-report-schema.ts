/** The members of a report about TLS (RFC 8460 §4.4): which there are, which must be, and their types. */
import { isIP } from 'node:net'
import { FAILURE_TYPES } from '../../src/tls-reports/stage-results.ts'

export interface Report {
  readonly 'organization-name': string
  readonly 'date-range': { readonly 'start-datetime': string; readonly 'end-datetime': string }
  readonly 'contact-info': string
  readonly 'report-id': string
  readonly policies: readonly {
    readonly policy: {
      readonly 'policy-type': string
      readonly 'policy-string'?: readonly string[]
      readonly 'policy-domain': string
      readonly 'mx-host'?: readonly string[]
    }
    readonly summary: { readonly 'total-successful-session-count': number; readonly 'total-failure-session-count': number }
    readonly 'failure-details'?: readonly Readonly<Record<string, string | number>>[]
  }[]
}

type Check = (value: unknown) => boolean
type Members = Readonly<Record<string, Check | readonly [optional: Check]>>

const text: Check = (value) => typeof value === 'string' && value !== ''
const count: Check = (value) => Number.isInteger(value) && (value as number) >= 0
const time: Check = (value) => typeof value === 'string' && /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/.test(value)
const ip: Check = (value) => typeof value === 'string' && isIP(value) !== 0
const oneOf =
  (...values: readonly string[]): Check =>
  (value) =>
    values.includes(value as string)
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)

/** An object with these members and no other. */
const objectOf =
  (members: Members): Check =>
  (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    const given = value as Readonly<Record<string, unknown>>
    if (Object.keys(given).some((name) => !Object.hasOwn(members, name))) return false
    return Object.entries(members).every(([name, check]) => {
      if (typeof check === 'function') return Object.hasOwn(given, name) && check(given[name])
      return !Object.hasOwn(given, name) || check[0](given[name])
    })
  }

const REPORT = objectOf({
  'organization-name': text,
  'date-range': objectOf({ 'start-datetime': time, 'end-datetime': time }),
  'contact-info': text,
  'report-id': text,
  policies: listOf(
    objectOf({
      policy: objectOf({
        'policy-type': oneOf('tlsa', 'sts', 'no-policy-found'),
        'policy-string': [listOf(text)],
        'policy-domain': text,
        'mx-host': [listOf(text)],
      }),
      summary: objectOf({ 'total-successful-session-count': count, 'total-failure-session-count': count }),
      'failure-details': [
        listOf(
          objectOf({
            'result-type': oneOf(...FAILURE_TYPES),
            'sending-mta-ip': [ip],
            'receiving-mx-hostname': text,
            'receiving-mx-helo': [text],
            'receiving-ip': [ip],
            'failed-session-count': count,
            'additional-information': [text],
            'failure-reason-code': [text],
          }),
        ),
      ],
    }),
  ),
})

/** The report, if it has the members of the RFC and no others, and its counts agree. Throws otherwise. */
export function assertReport(value: unknown): Report {
  if (!REPORT(value)) throw new Error(`not a report of RFC 8460: ${JSON.stringify(value)}`)
  const report = value as Report
  for (const { summary, 'failure-details': details = [] } of report.policies) {
    const failed = details.reduce((sum, detail) => sum + Number(detail['failed-session-count']), 0)
    if (failed !== summary['total-failure-session-count']) throw new Error(`the counts differ: ${JSON.stringify(value)}`)
  }
  return report
}
