/** The cookie of a session. Its name has the port, because browsers send the cookies of a host to all its ports. */
import type { Client } from './forwarded-client.ts'

/** Name of the session's cookie: `deferd-PORT`, with the port that the client uses. */
export function cookieName({ host, scheme }: Pick<Client, 'host' | 'scheme'>): string {
  const port = /:(\d+)$/.exec(host)?.[1] ?? (scheme === 'https' ? '443' : '80')
  return `deferd-${port}`
}

/** Value of a cookie in the field Cookie; null without it. */
export function cookieValue(field: string | undefined, name: string): string | null {
  const found = (field ?? '').split(';').find((pair) => pair.split('=', 1)[0]?.trim() === name)
  return found === undefined ? null : found.slice(found.indexOf('=') + 1).trim()
}

/** Field Set-Cookie that sets the cookie for the time of the browser's session, or removes it when the value is null. */
export function sessionCookie(client: Pick<Client, 'host' | 'scheme'>, value: string | null): string {
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Strict', ...(client.scheme === 'https' ? ['Secure'] : [])]
  return [`${cookieName(client)}=${value ?? ''}`, ...(value === null ? ['Max-Age=0'] : []), ...attributes].join('; ')
}
