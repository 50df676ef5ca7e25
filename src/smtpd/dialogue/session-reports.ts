/** Events about one SMTP session: refused commands, and errors of the client. */
import type { ClientName } from '../../mail/client-name.ts'
import { maskControls, type SmtpReply } from '../../mail/smtp-reply.ts'
import type { ClientFailure } from '../../telemetry/kinds/client-failures.ts'
import type { ParsedArgument } from './command-arguments.ts'
import type { Response } from './commands.ts'
import * as replies from './replies.ts'
import type { SessionContext } from './session-context.ts'

/** Maximum number of characters of a command in the log. */
const SHOWN_LIMIT = 100

/** A command that is not understood, for the log. */
export const shown = (line: string): string => maskControls(line).slice(0, SHOWN_LIMIT)

/** The client at the time of a report. */
interface ReportedClient {
  readonly client: ClientName
  readonly protocol: string
  readonly helo: string
}

/** The subject of a refusal. `isLogged`: the log has the reason. */
interface Refused {
  readonly sender?: string
  readonly recipient?: string
  readonly queueId?: string
  readonly isLogged?: boolean | undefined
}

export class SessionReports {
  readonly #context: Pick<SessionContext, 'events'> & { readonly settings: Pick<SessionContext['settings'], 'soft_bounce'> }
  readonly #session: () => ReportedClient

  constructor(context: SessionContext, session: () => ReportedClient) {
    this.#context = context
    this.#session = session
  }

  /** Refuses a command, or the content of a message, with a reply. */
  refused(stage: string, reply: SmtpReply, about: Refused): Response {
    const { events, settings } = this.#context
    const { client, protocol, helo } = this.#session()
    const sent = settings.soft_bounce ? replies.softened(reply) : reply
    events.emit({ kind: 'refused', client, stage, reply: sent, ...about, protocol, helo })
    return { reply }
  }

  /** Refuses an argument. Logs a path that is no address. */
  notParsed(command: 'MAIL' | 'RCPT' | 'VRFY', { refusal, illegal }: Extract<ParsedArgument<unknown>, { refusal: SmtpReply }>): Response {
    if (illegal !== undefined) this.failure({ what: 'illegal-address', command, address: illegal })
    return { reply: refusal }
  }

  failure(failure: ClientFailure): void {
    this.#context.events.emit({ kind: 'client-failure', client: this.#session().client, failure })
  }
}
