/**
 * The check of the field Host, against DNS rebinding: a page of another site whose name leads to this machine cannot read anything,
 * because its requests name the other site.
 */
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'

/** Names under which the own machine is reached, also through a forwarded port. */
const OWN = new Set(['localhost', '127.0.0.1', '::1'])

/**
 * The host of an authority such as `relay.example:443` or `[::1]:2580`, in lower case, without brackets and without the dot at the
 * end of a name. Undefined for any other text.
 */
export function hostOf(authority: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::\d{1,5})?$/i.exec(authority) ?? []
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? bracketed.toLowerCase() : undefined
  return plain?.toLowerCase().replace(/\.$/, '')
}

/** Name of a host in the form that browsers send. */
export const hostName = (name: string): string => (isIP(name) === 0 ? domainToASCII(name) : name).toLowerCase()

/**
 * True when the authority names this machine: a loopback name, the address to which the client has connected, or one of `hosts`. Any
 * port is accepted, because a forwarded port (ssh -L) has another number.
 */
export function isServed(
  authority: string,
  { hosts, local }: { readonly hosts: ReadonlySet<string>; readonly local: string | null },
): boolean {
  const host = hostOf(authority)
  return host !== undefined && (OWN.has(host) || hosts.has(host) || host === local)
}
