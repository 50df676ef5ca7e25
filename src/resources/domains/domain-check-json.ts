/** A check of a domain in JSON: its report, and the state of one that was ordered. */
import { z } from 'zod'
import { CHECK_LEASE, type DomainCheck } from '../../store/records/domain-check.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'
import { rulesShape, stateShape } from '../destination-json.ts'
import { count, textOrNull, time, timeOrNull, type Json } from '../members.ts'
import { tlsShape } from '../message-story-json.ts'

const verdictShape = z
  .enum(['ok', 'wrong', 'unknown'])
  .describe('the worst of the findings: wrong before unknown, which is a look-up that failed for now')
const findingShape = z.object({ what: z.string(), verdict: z.enum(['ok', 'note', 'wrong', 'unknown']), text: z.string() })

const failureShape = z.object({ status: z.string(), reason: z.string() }).nullable()
const lookUpShape = { state: z.enum(['found', 'none', 'failed']), failure: textOrNull }
const policyShape = z
  .object({ id: z.string(), mode: z.enum(['enforce', 'testing', 'none']), mx: z.array(z.string()), expire_time: time })
  .nullable()

const hostShape = z.object({
  host: z.string(),
  preference: z.number(),
  in_turn: z.boolean().describe('false for a host that is used only when those before it fail'),
  tls: tlsShape,
  failure: failureShape.describe('null when the host is ready for mail'),
  tested_policy_problem: textOrNull,
  certificate: z.object({ names: z.string(), end_time: time }).nullable(),
  tlsa: z.object({ state: lookUpShape.state, records: z.array(z.string()) }).nullable(),
})

const limitsShape = z.object({
  state: stateShape,
  concurrency_limit: z.number(),
  window: z.number().nullable(),
  recipient_limit: z.number(),
  rate_delay: z.number(),
  message_rate_limit: z.number(),
  message_rate: z.number().nullable(),
  provider: z.object({ name: z.string(), concurrency_limit: z.number(), message_rate_limit: z.number(), rules: rulesShape }).nullable(),
})

const senderShape = z.object({
  domain: z.string(),
  spf: z.array(z.object({ address: z.string(), result: z.string(), reason: textOrNull, lookups: count })),
  dkim: z.array(
    z.object({
      domain: z.string(),
      selector: z.string(),
      signs: z.boolean(),
      verdict: z.enum(['ok', 'wrong', 'unknown']),
      text: z.string(),
    }),
  ),
  dmarc: z.object({
    state: z.enum(['found', 'none', 'invalid', 'failed']),
    domain: textOrNull,
    policy: z.enum(['none', 'quarantine', 'reject']).nullable(),
    failure: textOrNull,
  }),
})

export const domainReportShape = z
  .object({
    domain: z.string(),
    time,
    verdict: verdictShape,
    mail: z.object({
      outcome: z.enum(['sent', 'deferred', 'returned', 'discarded']),
      waits: z.boolean().describe('the destination is dead or suspended, so that mail waits first'),
      verdict: findingShape.shape.verdict,
      status: z.string(),
      reason: z.string(),
      relay: textOrNull,
      tls: tlsShape.nullable(),
      text: z.string(),
    }),
    destination: z.string(),
    next_hops: z.array(z.object({ next_hop: z.string(), origin: z.string(), failure: failureShape, hosts: z.array(hostShape) })),
    mx: z
      .object({
        domain: z.string(),
        ...lookUpShape,
        authentic: z.boolean(),
        records: z.array(z.object({ preference: z.number(), exchange: z.string() })),
      })
      .nullable(),
    mta_sts: z
      .object({ record: textOrNull, record_failure: textOrNull, published: policyShape, failure: textOrNull, kept: policyShape })
      .nullable(),
    tls_rpt: z.object({ state: z.enum(['found', 'none', 'invalid', 'failed']), rua: z.array(z.string()), failure: textOrNull }).nullable(),
    limits: limitsShape,
    helo: z.object({ name: z.string(), ...lookUpShape, addresses: z.array(z.string()) }),
    sources: z.array(z.object({ address: z.string(), ...lookUpShape, names: z.array(z.string()), confirmed: z.array(z.string()) })),
    private_sources: z.array(z.string()),
    sender: senderShape,
    findings: z.array(findingShape),
  })
  .meta({ id: 'DomainReport' })

/** The object of `deferd check domain --json`. */
export type DomainReportJson = Json<typeof domainReportShape>

const checkMembers = {
  domain: z.string(),
  sender_domain: z.string().describe('the domain of senders whose SPF, DKIM and DMARC are checked'),
  state: z.enum(['running', 'done', 'failed']),
  ordered_by: z.string(),
  node: z.string().describe('the node whose addresses and look-ups the report is about'),
  begin_time: time,
  end_time: timeOrNull,
  failure: textOrNull.describe('why the check has no report; the report is that of the check before'),
}

/** Number of findings in a summary. */
const MOST_PROBLEMS = 5

export const domainCheckSummaryShape = z.object({
  ...checkMembers,
  report_time: timeOrNull.describe('time of the last report; null without one'),
  verdict: verdictShape.nullable(),
  mail: textOrNull.describe('what happens to mail for the domain'),
  problems: z
    .array(findingShape)
    .describe(
      `the findings that are wrong or unknown, the first ${MOST_PROBLEMS}, and \`mail\` where only mail is, such as that of a suspended destination`,
    ),
})
export type DomainCheckSummaryJson = Json<typeof domainCheckSummaryShape>

export const domainChecksShape = z.object({ checks: z.array(domainCheckSummaryShape), as_of: time }).meta({ id: 'DomainChecks' })
export type DomainChecksJson = Json<typeof domainChecksShape>

export const domainCheckShape = z
  .object({ ...checkMembers, report: domainReportShape.nullable().describe('the last report; null before the first') })
  .meta({ id: 'DomainCheck' })
export type DomainCheckJson = Json<typeof domainCheckShape>

const NODE_GONE = 'the daemon ended during the check: order it again'

function membersOf({ domain, sender, orderedBy, node, beganAt, endedAt, failure }: DomainCheck, now: QueueTime, wall: WallView) {
  const isGone = endedAt === null && now >= beganAt + CHECK_LEASE
  const reason = isGone ? NODE_GONE : failure
  return {
    domain,
    sender_domain: sender,
    state: endedAt === null && !isGone ? ('running' as const) : reason === null ? ('done' as const) : ('failed' as const),
    ordered_by: orderedBy,
    node,
    begin_time: wall.seconds(beganAt),
    end_time: wall.secondsOrNull(endedAt),
    failure: reason,
  }
}

/** The report of a row; null before the first one, and for one that another version of deferd has written in another form. */
const reportIn = ({ report }: DomainCheck): DomainReportJson | null => domainReportShape.safeParse(report).data ?? null

export const domainCheckJson = (check: DomainCheck, now: QueueTime, wall: WallView): DomainCheckJson => ({
  ...membersOf(check, now, wall),
  report: reportIn(check),
})

/** The findings for the verdict of a report. Without one of its kind it is that of the mail, such as that of a suspended destination. */
function problemsIn({ verdict: whole, findings, mail }: DomainReportJson): readonly Json<typeof findingShape>[] {
  const problems = findings.filter(({ verdict }) => verdict === 'wrong' || verdict === 'unknown')
  const isTold = whole === 'ok' || problems.some(({ verdict }) => verdict === whole)
  return isTold ? problems : [{ what: 'mail', verdict: mail.verdict, text: mail.text }, ...problems]
}

export function domainCheckSummaryJson(check: DomainCheck, now: QueueTime, wall: WallView): DomainCheckSummaryJson {
  const report = reportIn(check)
  return {
    ...membersOf(check, now, wall),
    report_time: report?.time ?? null,
    verdict: report?.verdict ?? null,
    mail: report?.mail.text ?? null,
    problems: report === null ? [] : problemsIn(report).slice(0, MOST_PROBLEMS),
  }
}
