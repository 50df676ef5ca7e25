/** The Received field that is prepended to every accepted message (RFC 5321 §4.4, Postfix smtpd and pickup). */

import type { UpstreamMessage } from '../../mail/client-name.ts'

/** An SMTP client as the Received field and the log name it. */
export interface SmtpClient {
  /** The verified host name; `unknown` when there is none or when no lookup was made. */
  readonly name: string
  readonly address: string
  /** The argument of HELO or EHLO; empty when the client sent neither. */
  readonly helo: string
  /** Protocol keyword of RFC 3848: SMTP, ESMTP, ESMTPS, ESMTPSA, UTF8SMTP … */
  readonly protocol: string
  /** Protocol and cipher of an encrypted connection. */
  readonly tls?: { readonly version: string; readonly cipher: string } | undefined
  readonly saslUsername?: string | undefined
  readonly saslMethod?: string | undefined
  /** The message at the server in front of a filter (XFORWARD). */
  readonly upstream?: UpstreamMessage | undefined
  /** True for local_header_rewrite_clients. Their mail gets missing Date, From and Message-Id fields. */
  readonly local: boolean
  /** True for a client that may relay (mynetworks or AUTH). Its mail is signed, unless a filter says that it came from a stranger. */
  readonly own: boolean
}

/** A user of this machine who called `sendmail`. */
export interface LocalUser {
  readonly uid: number
  /** Key of the maildrop file that holds the message. */
  readonly maildropFile?: string | undefined
}

export interface Trace {
  readonly client: SmtpClient | LocalUser
  readonly myhostname: string
  readonly mailName: string
  readonly queueId: string
  /**
   * Recipients of the message. The field names a recipient only if it is the only one, so that recipients do not learn of each
   * other.
   */
  readonly recipients: readonly { readonly address: string }[]
  readonly date: string
  /** The granted priority; undefined when the client asked for none (RFC 6710 §9). */
  readonly priority?: number | undefined
}

const literal = (address: string): string => (address.includes(':') ? `IPv6:${address}` : address)

function origin(client: SmtpClient): string {
  const from = `Received: from ${client.helo === '' ? client.name : client.helo} (${client.name} [${literal(client.address)}])\r\n`
  return client.tls === undefined ? from : `${from}\t(using ${client.tls.version} with cipher ${client.tls.cipher})\r\n`
}

/** The Received field with its CRLF. */
export function receivedLine(trace: Trace): string {
  const { client, myhostname, mailName, queueId, recipients, date, priority } = trace
  const clause = priority === undefined ? '' : `\r\n\tPRIORITY ${priority}`
  if ('uid' in client) return `Received: by ${myhostname} (${mailName}, from userid ${client.uid})\r\n\tid ${queueId}; ${date}\r\n`
  const by = `${origin(client)}\tby ${myhostname} (${mailName}) with ${client.protocol} id ${queueId}`
  const [only, ...others] = recipients
  return only !== undefined && others.length === 0
    ? `${by}\r\n\tfor <${only.address}>${clause}; ${date}\r\n`
    : `${by}${clause};\r\n\t${date}\r\n`
}
