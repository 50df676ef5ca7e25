/**
 * Admission of requests to admin_listen and to admin.sock: host, trusted proxies, origin of the request, credentials, role; in this
 * order, so that a request of a foreign host or site learns nothing.
 */
import type { IncomingMessage } from 'node:http'
import { canonicalAddress, type Networks } from '../config/values/networks.ts'
import { LOCAL_PREFIX, LOCAL_REALM, OPERATOR_FIELD } from './command-protocol.ts'
import { cookieName, cookieValue } from './requests/cookies.ts'
import type { FailureLimit } from './failure-limit.ts'
import { clientOf, type Client } from './requests/forwarded-client.ts'
import { isServed } from './requests/host-check.ts'
import { HTTP_PROBLEMS, Problem } from './problem-details.ts'
import { crossSiteReason } from './requests/request-origin.ts'
import type { RequestTarget } from './requests/request-target.ts'
import { grants, type AuthenticatedClient, type Role } from './requests/requester.ts'
import type { Admitted } from './route-listener.ts'

/** A token, the value of the cookie of a session, or the local token of a command, which counts at the Unix socket only. */
export type Credential =
  | { readonly kind: 'token'; readonly text: string }
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'local'; readonly text: string; readonly user: string }

export interface WebRules {
  /** Hosts besides those of this machine, in lower case. */
  readonly hosts: ReadonlySet<string>
  readonly proxies: Pick<Networks, 'has'>
  /** True for a port beyond loopback without TLS, which only this machine and the proxies may use. */
  readonly needsProxy: boolean
}

interface WebAdmissionDeps {
  readonly rules: () => WebRules
  /** The client with this credential; null for one that is unknown or has expired. */
  readonly authenticate: (credential: Credential, client: Client) => Promise<AuthenticatedClient | null>
  /** False when the credential is no longer valid. Asked for as long as a stream is open. */
  readonly confirm: (credential: Credential) => Promise<boolean>
  readonly failures: FailureLimit
  /** Remedies for refused clients, as ends of sentences. */
  readonly remedies: {
    /** For a host that is not served. */
    readonly host: string
    /** For a request without a credential. */
    readonly credential: string
  }
}

const LOOPBACK = /^(?:127\.|::1$)/

export const webAdmission =
  ({ rules, authenticate, confirm, failures, remedies }: WebAdmissionDeps) =>
  async (request: IncomingMessage, target: RequestTarget, role: Role): Promise<Admitted> => {
    const { hosts, proxies, needsProxy } = rules()
    const { remoteAddress, localAddress } = request.socket
    const peer = remoteAddress === undefined ? null : canonicalAddress(remoteAddress)
    const local = localAddress === undefined ? null : canonicalAddress(localAddress)
    const host = hostField(request, target)
    for (const named of [host, request.headers.host ?? '']) assertServed(named, { hosts, local }, remedies.host)
    if (needsProxy && peer !== null && !LOOPBACK.test(peer) && !proxies.has(peer))
      throw new Problem(
        HTTP_PROBLEMS.untrustedAddress,
        `${peer} is not one of admin_proxies, and the connection has no TLS: set admin_tls_cert_file`,
      )
    const client = clientFacts(request, { peer, host, proxies })
    const credential = credentialOf(request, client, peer === null)
    const reason = crossSiteReason({
      method: request.method ?? '',
      site: textField(request, 'sec-fetch-site'),
      origin: textField(request, 'origin'),
      ownOrigin: `${client.scheme}://${host}`,
      hasToken: credential?.kind === 'token' || credential?.kind === 'local',
      hasCookie: credential?.kind === 'session',
    })
    if (reason !== null) throw new Problem(HTTP_PROBLEMS.crossSite, `request refused as one of another site: ${reason}`)
    if (role === 'anyone' && credential?.kind !== 'local') return { client, requester: null, confirm: () => Promise.resolve(true) }
    const requester = await identified()
    if (!grants(requester.role, role))
      throw new Problem(
        HTTP_PROBLEMS.notPermitted,
        `the role ${requester.role} of ${requester.name} does not permit this: it needs the role ${role}`,
      )
    return { client, requester, confirm: async () => credential !== null && confirm(credential) }

    async function identified(): Promise<AuthenticatedClient> {
      if (credential === null) throw unauthenticated(remedies.credential)
      // An address that is blocked keeps its sessions: a session id of 256 bits cannot be guessed.
      if (credential.kind === 'token') assertMayTry(failures, client)
      const found = await authenticate(credential, client)
      if (found !== null) return found
      // A command with the right local token is never blocked.
      if (credential.kind === 'local') assertMayTry(failures, client)
      if (credential.kind !== 'session') failures.failed(client.address)
      throw UNKNOWN_CREDENTIAL[credential.kind]()
    }
  }

/** Address of the client of a request, for the log; that of the peer when the request is malformed. */
export function addressOf(request: IncomingMessage, proxies: WebRules['proxies']): string {
  const { remoteAddress } = request.socket
  const peer = remoteAddress === undefined ? null : canonicalAddress(remoteAddress)
  const client = clientOf({ ...forwardedFields(request), peer, host: '', proxies, isEncrypted: false })
  return 'refused' in client ? (peer ?? 'local') : client.address
}

/** Throws Problem when the address has failed too often to try another token or code. */
export function assertMayTry(failures: FailureLimit, { address }: Pick<Client, 'address'>): void {
  const wait = failures.wait(address)
  if (wait === 0) return
  const headers = { 'retry-after': String(wait) }
  throw new Problem(HTTP_PROBLEMS.tooManyFailures, `too many failures from ${address}: try again in ${wait} s`, { headers })
}

const unauthenticated = (detail: string, challenge = 'Bearer realm="deferd"'): Problem =>
  new Problem(HTTP_PROBLEMS.unauthenticated, detail, { headers: { 'www-authenticate': challenge } })

const UNKNOWN_CREDENTIAL: Readonly<Record<Credential['kind'], () => Problem>> = {
  token: () => unauthenticated('the token is unknown or has expired'),
  session: () => unauthenticated('the session has ended: log in again'),
  local: () => unauthenticated('this is not the local token of the running daemon', LOCAL_REALM),
}

/** Header fields whose repetition would make the request ambiguous. */
const SINGLE = [
  'host',
  'authorization',
  OPERATOR_FIELD,
  'content-encoding',
  'content-type',
  'idempotency-key',
  'origin',
  'sec-fetch-site',
  'x-forwarded-user',
  'x-forwarded-proto',
]

/** Host and port that the client names. Throws Problem without exactly one field Host. */
function hostField({ rawHeaders, headers }: IncomingMessage, { authority }: RequestTarget): string {
  const names = rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
  const repeated = SINGLE.find((name) => names.filter((other) => other === name).length > 1)
  if (repeated !== undefined) throw new Problem(HTTP_PROBLEMS.malformed, `the request has several fields ${repeated}`)
  if (headers.host === undefined) throw new Problem(HTTP_PROBLEMS.malformed, 'the request has no field Host')
  // The authority of an absolute target replaces the field Host (RFC 9112 §3.2.2).
  return authority ?? headers.host
}

function assertServed(host: string, served: Parameters<typeof isServed>[1], remedy: string): void {
  if (isServed(host, served)) return
  throw new Problem(HTTP_PROBLEMS.wrongHost, `this server does not serve the host ${JSON.stringify(host.slice(0, 256))}: ${remedy}`)
}

function textField({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.join(', ')
}

const forwardedFields = (request: IncomingMessage) => ({
  forwardedFor: textField(request, 'x-forwarded-for'),
  forwardedProto: textField(request, 'x-forwarded-proto'),
  forwardedUser: textField(request, 'x-forwarded-user'),
})

function clientFacts(
  request: IncomingMessage,
  facts: { readonly peer: string | null; readonly host: string; readonly proxies: WebRules['proxies'] },
): Client {
  const client = clientOf({ ...facts, ...forwardedFields(request), isEncrypted: 'encrypted' in request.socket })
  if ('refused' in client) throw new Problem(HTTP_PROBLEMS.malformed, client.refused)
  return client
}

/** The credential of a request. A token counts before a cookie. */
function credentialOf(request: IncomingMessage, client: Client, isSocket: boolean): Credential | null {
  const [, text] = /^Bearer +(\S+)$/i.exec(textField(request, 'authorization') ?? '') ?? []
  if (isSocket && text?.startsWith(LOCAL_PREFIX) === true)
    return { kind: 'local', text, user: textField(request, OPERATOR_FIELD) ?? 'local' }
  if (text !== undefined) return { kind: 'token', text }
  const id = cookieValue(request.headers.cookie, cookieName(client))
  return id === null || id === '' ? null : { kind: 'session', id }
}
