/** Names of clients of SMTP servers, as they are logged. */

/** Name and address of a client of the SMTP server. */
export interface ClientName {
  /** Verified host name, or `unknown`. */
  readonly name: string
  /** IP address. */
  readonly address: string
}

/** The message at the server in front of a filter, as XFORWARD described it. */
export interface UpstreamMessage {
  /** Client of that server, `unknown` in members that are not known; absent when nothing is known of it. */
  readonly client?: ClientName | undefined
  readonly queueId?: string | undefined
}
