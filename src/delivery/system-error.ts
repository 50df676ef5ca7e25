/** Errors of the system in the words people know from their logs. */

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
  const code = 'code' in error ? String(error.code) : ''
  return TEXTS[code] ?? error.message
}

/**
 * What went wrong with TLS. OpenSSL's own message begins with the id of a thread and ends with a line of its source;
 * Node gives its words as `reason`.
 */
export function tlsErrorText(error: Error): string {
  if (!('library' in error && 'reason' in error)) return error.message
  return typeof error.reason === 'string' ? error.reason : error.message
}
