/**
 * Reads Postfix's logfiles of a message (bounce(8)): in `defer` and `bounce`, the outcome of the last delivery of each recipient; in
 * `trace`, the addresses that aliases replaced and for which the sender had asked for a success notice. Malformed records are skipped.
 * Pure.
 */
import { isEnhancedStatus, maskControls, type DeliveryStatus, type Stage } from '../../mail/smtp-reply.ts'

/** Outcomes by the offset of the recipient in the queue file. */
export type DeliveryLog = ReadonlyMap<number, DeliveryStatus>

export function readDeliveryLog(text: string): DeliveryLog {
  const log = new Map<number, DeliveryStatus>()
  for (const fields of entriesOf(text)) {
    const status = fields.get('status') ?? ''
    const offset = Number(fields.get('offset') ?? Number.NaN)
    if (Number.isSafeInteger(offset) && isEnhancedStatus(status)) log.set(offset, outcomeOf(status, fields))
  }
  return log
}

/** An alias that was replaced, and its ORCPT. */
export interface ReplacedAlias {
  /** As Postfix has it: without quotes around the local part. */
  readonly address: string
  readonly orcpt: string | undefined
}

export function readTraceLog(text: string): readonly ReplacedAlias[] {
  return entriesOf(text).flatMap((fields) => {
    const address = fields.get('recipient')
    return fields.get('action') === 'expanded' && address !== undefined ? [{ address, orcpt: fields.get('dsn_orig_rcpt') }] : []
  })
}

/** The fields of each entry. */
const entriesOf = (text: string): readonly ReadonlyMap<string, string>[] =>
  text.split(/\n{2,}/).map((entry) => new Map(entry.split('\n').flatMap((line) => [fieldOf(line)].filter((field) => field !== null))))

function fieldOf(line: string): readonly [name: string, value: string] | null {
  const match = /^([a-z_]+)=(.*)$/.exec(line)
  return match?.[1] === undefined || match[2] === undefined ? null : [match[1], maskControls(match[2])]
}

function outcomeOf(status: string, fields: ReadonlyMap<string, string>): DeliveryStatus {
  const reason = fields.get('reason') ?? 'unknown reason'
  const reply = fields.get('diag_type') === 'smtp' ? fields.get('diag_text') : undefined
  const remoteMta = fields.get('mta_mname')
  return {
    status,
    reason,
    ...(reply === undefined ? {} : { reply }),
    ...(remoteMta === undefined ? {} : { remoteMta }),
    stage: stageOf(reason, reply),
  }
}

/** Texts of Postfix's smtp client at each stage. */
const STAGES: readonly (readonly [text: RegExp, stage: Stage])[] = [
  [/in reply to (?:EHLO|HELO) command/, 'ehlo'],
  [/Cannot start TLS|[Ss]erver certificate/, 'handshake'],
  [/in reply to STARTTLS command|TLS/, 'starttls'],
  [/authentication failed|in reply to AUTH/, 'auth'],
  [/in reply to MAIL FROM command/, 'mail'],
  [/in reply to RCPT TO command/, 'rcpt'],
  [/in reply to DATA command/, 'data'],
  [/in reply to end of DATA command|while sending end of data/, 'end-of-data'],
  [/while sending message body/, 'body'],
  [/refused to talk to me|initial server greeting/, 'greeting'],
  [/name service error|Host or domain name not found|Host not found/, 'dns'],
]

const stageOf = (reason: string, reply: string | undefined): Stage =>
  STAGES.find(([text]) => text.test(reason))?.[1] ?? (reply === undefined ? 'connect' : 'rcpt')
