/** Replies that a remote server sends when no rule applies. */

/** Extensions that EHLO offers. */
export const EXTENSIONS = ['PIPELINING', 'SIZE 104857600', 'ENHANCEDSTATUSCODES', '8BITMIME', 'DSN', 'SMTPUTF8'] as const

/** Reply lines by stage, each in the form `250 text`. `replyBytes` adds the hyphens of a multiline reply. */
export const DEFAULT_REPLIES = {
  greeting: (mx: string) => [`220 ${mx} ESMTP`],
  ehlo: (mx: string, extensions: readonly string[]) => [`250 ${mx}`, ...extensions.map((extension) => `250 ${extension}`)],
  helo: (mx: string) => [`250 ${mx}`],
  starttls: ['220 2.0.0 Ready to start TLS'],
  auth: ['235 2.7.0 Authentication successful'],
  authRefused: ['535 5.7.8 Error: authentication failed'],
  mail: ['250 2.1.0 Ok'],
  rcpt: ['250 2.1.5 Ok'],
  data: ['354 End data with <CR><LF>.<CR><LF>'],
  endOfData: (number: number) => [`250 2.0.0 Ok: queued as ${number}`],
  rset: ['250 2.0.0 Ok'],
  noop: ['250 2.0.0 Ok'],
  quit: ['221 2.0.0 Bye'],
  badSequence: ['503 5.5.1 Error: bad sequence of commands'],
  badSyntax: ['501 5.5.4 Syntax error'],
  unknown: ['502 5.5.2 Error: command not recognized'],
} as const
