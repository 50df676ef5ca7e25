/** The recipient and the SMTP session for which access restrictions are evaluated. */

export interface AccessRequest {
  readonly client: { readonly name: string; readonly address: string }
  readonly helo: string
  readonly protocol: string
  readonly sender: string
  readonly recipient: string
  /** Sender and recipient as the client gave them: without a domain that this relay adds. */
  readonly given: { readonly sender: string; readonly recipient: string }
  /** The recipient as the client gave it, in a form suitable for a reply. */
  readonly path: string
  /** Size that the client declared, in bytes; 0 for none. */
  readonly size: number
  readonly login: { readonly name: string; readonly method: string } | undefined
  /** True for a client in mynetworks. */
  readonly isTrusted: boolean
  /** True for a recipient to whom every client may send. */
  readonly isOpen: boolean
  /** True for a recipient in relay_domains. */
  readonly isInRelayDomains: boolean
  readonly encryption: { readonly version: string; readonly cipher: string } | undefined
  /** Identifies the transaction, for policy servers. */
  readonly instance: string
}

/** Property of the session that a list or a check is about. */
export type Subject = 'client' | 'sender' | 'recipient' | 'login'

const CLASSES: Readonly<Record<Subject, string>> = {
  client: 'Client host',
  sender: 'Sender address',
  recipient: 'Recipient address',
  login: 'SASL login name',
}

/** `<ann@example.com>: Sender address`, as replies and the log name a subject (Postfix smtpd_check_reject). */
export const describeSubject = (subject: Subject, request: AccessRequest): string => `<${nameOf(subject, request)}>: ${CLASSES[subject]}`

function nameOf(subject: Subject, { client, given, login }: AccessRequest): string {
  switch (subject) {
    case 'client':
      return `${client.name}[${client.address}]`
    case 'sender':
      return given.sender
    case 'recipient':
      return given.recipient
    case 'login':
      return login?.name ?? ''
  }
}
