/**
 * The trace line that every accepted message gets on top (RFC 5321 §4.4, postfix smtpd and pickup).
 */

/** An SMTP client, as the trace line and the log name it. */
export interface SmtpClient {
  /** Its verified name; `unknown` when it has none or nobody looked. */
  readonly name: string
  readonly address: string
  /** What it called itself; empty when it did not say. */
  readonly helo: string
  /** RFC 3848: SMTP, ESMTP, ESMTPS, ESMTPSA, UTF8SMTP … */
  readonly protocol: string
  /** Protocol and cipher of an encrypted connection. */
  readonly tls?: { readonly version: string; readonly cipher: string } | undefined
  readonly saslUsername?: string | undefined
  readonly saslMethod?: string | undefined
  /** One of ours (mynetworks): its mail is completed where it lacks Date, From or Message-Id. */
  readonly local: boolean
}

/** A user of this machine who handed mail to `sendmail`. */
export interface LocalUser {
  readonly uid: number
}

export interface Trace {
  readonly client: SmtpClient | LocalUser
  readonly myhostname: string
  readonly mailName: string
  readonly queueId: string
  /** Named only when there is exactly one: others must not learn of each other. */
  readonly recipients: readonly { readonly address: string }[]
  readonly date: string
}

const literal = (address: string): string => (address.includes(':') ? `IPv6:${address}` : address)

function origin(client: SmtpClient): string {
  const from = `Received: from ${client.helo === '' ? client.name : client.helo} (${client.name} [${literal(client.address)}])\r\n`
  return client.tls === undefined ? from : `${from}\t(using ${client.tls.version} with cipher ${client.tls.cipher})\r\n`
}

/** The Received line with its CRLF. */
export function receivedLine(trace: Trace): string {
  const { client, myhostname, mailName, queueId, recipients, date } = trace
  if ('uid' in client) return `Received: by ${myhostname} (${mailName}, from userid ${client.uid})\r\n\tid ${queueId}; ${date}\r\n`
  const by = `${origin(client)}\tby ${myhostname} (${mailName}) with ${client.protocol} id ${queueId}`
  const [only, ...others] = recipients
  return only !== undefined && others.length === 0 ? `${by}\r\n\tfor <${only.address}>; ${date}\r\n` : `${by};\r\n\t${date}\r\n`
}
