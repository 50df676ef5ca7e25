/** Kinds of events of the SMTP server and of the checks of mail. */
import type { ActionName } from '../../checks/action.ts'
import { arrivalLines, type Discarded } from '../../events/arrival-lines.ts'
import { CLIENT, clientText, line, logged, same } from '../../events/event-kind.ts'
import type { ClientName } from '../../mail/client-name.ts'
import { formatReply, maskControls, type SmtpReply } from '../../mail/smtp-reply.ts'
import { failureLine, failureText, type ClientFailure } from './client-failures.ts'

/** Actions of access tables and policy servers that are logged; `reject_warning` is a refusal after warn_if_reject. */
export type AccessActionName = 'hold' | 'discard' | 'redirect' | 'bcc' | 'prepend' | 'warn' | 'info' | 'reject_warning'

/** Origin of a content that was checked. */
export interface ContentOrigin {
  /** Null for local submissions. */
  readonly client: ClientName | null
  readonly sender: string
  readonly recipient: string
  readonly protocol: string | undefined
  readonly helo: string | undefined
}

type Count = readonly [ok: number, all: number]

/** Formats counts of commands: `5`, or `3/5` when two of five failed. None is `0/0`. */
const countText = ([ok, all]: Count): string => (ok === all && all > 0 ? String(all) : `${ok}/${all}`)

function commandsText(commands: Readonly<Record<string, Count>>): string {
  let [ok, all, text] = [0, 0, '']
  for (const [name, count] of Object.entries(commands)) {
    ok += count[0]
    all += count[1]
    text += ` ${name}=${countText(count)}`
  }
  return `${text} commands=${countText([ok, all])}`
}

const heloText = (helo: string | undefined): string => (helo === undefined || helo === '' ? '' : ` helo=<${helo}>`)

/** Words of cleanup(8) for actions; the others are their own. */
const ACTION_WORDS: Readonly<Record<string, string>> = { warn: 'warning' }
/** Maximum number of octets of a field or line in the log (Postfix cleanup_act_log). */
const SHOWN_OCTETS = 200

const textOf = (octets: string): string => Buffer.from(octets, 'latin1').toString()

/** Octets as text without control characters, and without octets that are not UTF-8. */
const printable = (octets: string): string => maskControls(textOf(octets)).replaceAll('\ufffd', '?')

function originText({ client, sender, recipient, protocol, helo }: ContentOrigin): string {
  const origin = client === null ? 'local' : clientText(client)
  return ` from ${origin}; from=<${sender}> to=<${recipient}>${protocol === undefined ? '' : ` proto=${protocol}`}${heloText(helo)}`
}

export const SMTPD_KINDS = {
  connected: logged<{ readonly client: ClientName }>({
    level: 'info',
    about: 'a client connected',
    record: CLIENT,
    lines: ({ client }) => line('smtpd', `connect from ${clientText(client)}`),
  }),
  disconnected: logged<{ readonly client: ClientName; readonly commands: Readonly<Record<string, Count>> }>({
    level: 'info',
    about: 'a client disconnected; `commands` holds accepted and all commands by name',
    record: { ...CLIENT, ...same('commands') },
    lines: ({ client, commands }) => line('smtpd', `disconnect from ${clientText(client)}${commandsText(commands)}`),
  }),
  refused: logged<{
    readonly client: ClientName
    readonly stage: string
    readonly reply: SmtpReply
    readonly queueId?: string | undefined
    readonly sender?: string | undefined
    readonly recipient?: string | undefined
    readonly protocol: string
    readonly helo: string
    /** True when another event of the message has the reason. */
    readonly isLogged?: boolean | undefined
  }>({
    level: 'info',
    about: 'a command of a client was refused',
    record: {
      ...CLIENT,
      ...same('stage'),
      reply: ({ reply }) => formatReply(reply),
      queue_id: ({ queueId }) => queueId ?? null,
      sender: ({ sender }) => sender ?? null,
      recipient: ({ recipient }) => recipient ?? null,
      ...same('protocol', 'helo'),
    },
    lines({ client, stage, reply, queueId = 'NOQUEUE', sender, recipient, protocol, helo, isLogged = false }) {
      if (isLogged) return []
      const from = sender === undefined ? '' : ` from=<${sender}>`
      const to = recipient === undefined ? '' : ` to=<${recipient}>`
      const what = `${queueId}: reject: ${stage} from ${clientText(client)}: ${formatReply(reply)};`
      return line('smtpd', `${what}${from}${to} proto=${protocol}${heloText(helo)}`)
    },
  }),
  'client-failure': logged<{ readonly client: ClientName; readonly failure: ClientFailure }>({
    level: 'info',
    about: 'a connection was refused or failed (timeout, lost connection, TLS error), a login failed, or a command was malformed',
    record: { ...CLIENT, text: ({ failure }) => failureText(failure) },
    lines: ({ client, failure }) => line('smtpd', failureLine(client, failure)),
  }),
  'content-checked': logged<{
    /** Whether mail arrived or was sent. */
    readonly during: 'arrival' | 'delivery'
    readonly queueId: string
    readonly action: ActionName
    readonly part: 'header' | 'body'
    /** The field or line, one character per octet. */
    readonly octets: string
    /** Text of the action; empty without one. */
    readonly text: string
    readonly from?: ContentOrigin | undefined
  }>({
    level: 'info',
    about: 'an action of header_checks, body_checks or smtp_header_checks; `part` is `header` or `body`, `content` the field or line',
    record: {
      queue_id: ({ queueId }) => queueId,
      ...same('during', 'action', 'part'),
      content: ({ octets }) => textOf(octets.slice(0, SHOWN_OCTETS)),
      text: ({ text }) => textOf(text),
      client_name: ({ from }) => from?.client?.name ?? null,
      client_address: ({ from }) => from?.client?.address ?? null,
      sender: ({ from }) => from?.sender ?? null,
      recipient: ({ from }) => from?.recipient ?? null,
    },
    lines({ during, queueId, action, part, octets, text, from }) {
      const what = `${queueId}: ${ACTION_WORDS[action] ?? action}: ${part} ${printable(octets.slice(0, SHOWN_OCTETS))}`
      const reason = text === '' ? '' : `: ${printable(text)}`
      return line(during === 'arrival' ? 'cleanup' : 'smtp', `${what}${from === undefined ? '' : originText(from)}${reason}`)
    },
  }),
  /** An action of an access table or of a policy server that did not refuse the recipient. */
  'access-action': logged<{
    readonly client: ClientName
    readonly action: AccessActionName
    /** `<ann@example.com>: Sender address triggers HOLD action` */
    readonly text: string
    readonly sender: string
    readonly recipient: string
    readonly protocol: string
    readonly helo: string
  }>({
    level: 'info',
    about: 'an action of an access table or of a policy server that did not refuse the recipient; `reject_warning` after warn_if_reject',
    record: {
      ...same('action', 'text'),
      ...CLIENT,
      ...same('sender', 'recipient', 'protocol', 'helo'),
    },
    lines({ action, client, text, sender, recipient, protocol, helo }) {
      const session = `from=<${sender}> to=<${recipient}> proto=${protocol}${heloText(helo)}`
      return line('smtpd', `NOQUEUE: ${action}: RCPT from ${clientText(client)}: ${maskControls(text)}; ${session}`)
    },
  }),
  discarded: logged<Discarded>({
    level: 'info',
    about: 'a message was accepted and discarded by an action of header_checks, body_checks or an access table',
    record: {
      queue_id: ({ queueId }) => queueId,
      ...same('sender'),
      message_id: ({ messageId }) => messageId ?? null,
      ...CLIENT,
      uid: ({ uid }) => uid ?? null,
    },
    lines: (event) => arrivalLines(event),
  }),
}
