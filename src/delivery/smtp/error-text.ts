/** Texts of system and TLS errors as Postfix logs them (strerror(3)). */

const TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Connection refused',
  ETIMEDOUT: 'Connection timed out',
  EHOSTUNREACH: 'No route to host',
  ENETUNREACH: 'Network is unreachable',
  ECONNRESET: 'Connection reset by peer',
  EADDRNOTAVAIL: 'Cannot assign requested address',
  EACCES: 'Permission denied',
  ENOENT: 'No such file or directory',
}

export function systemErrorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // nodemailer replaces the code of an error of the system, whose message ends with it.
  const codes = ['code' in error ? String(error.code) : '', /E[A-Z]+$/.exec(error.message)?.[0] ?? '']
  return codes.map((code) => TEXTS[code]).find((text) => text !== undefined) ?? error.message
}

/** Advice that Node adds to some reasons of OpenSSL; it speaks of Node's command line. */
const NODE_HINT = /; if the root CA is installed locally.*$/

/** Text of a TLS error. OpenSSL's message begins with a thread id and ends with a source line; Node's `reason` is the text between. */
export function tlsErrorText(error: Error): string {
  if (!('library' in error && 'reason' in error)) return error.message.replace(NODE_HINT, '')
  return typeof error.reason === 'string' ? error.reason : error.message
}
