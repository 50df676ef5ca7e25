/** Faults of an access token before a server sees it, and the fault for which a server refuses one that looks right. Pure. */
import type { OauthTable } from '../config/values/tables/oauth-table.ts'
import { reasonWith, type LoginRefusal } from '../mail/login-refusal.ts'
import { MINUTE, SECOND, type Duration, type WallTime } from '../system/clock.ts'
import { adviceFor, loginAdvice } from './advice.ts'
import type { TokenFailure } from './token-answer.ts'
import type { TokenClaims } from './token-claims.ts'

const FAULT_KINDS = [
  // Of the request.
  'unreachable',
  'credentials',
  'consent',
  'login-ended',
  // Of the token.
  'audience',
  'permission',
  'tenant',
  'user',
  'clock',
  // Of the login at the server.
  'registration',
  'mailbox',
  'smtp-auth-off',
  'refused',
  'no-login',
  'server',
] as const

export interface Fault {
  readonly kind: (typeof FAULT_KINDS)[number]
  /** Sentence with the cause, and with what to do. */
  readonly text: string
}

/** Numbers of Microsoft for a missing consent, and for the time of an assertion. */
const CONSENT: ReadonlySet<string> = new Set(['AADSTS65001', 'AADSTS65004', 'AADSTS90094'])
const CLOCK: ReadonlySet<string> = new Set(['AADSTS700024'])

/** The fault of a token request that was not answered with a token. */
export function requestFault(table: OauthTable, failure: TokenFailure): Fault {
  const text = `no access token: ${failure.why}: ${adviceFor(table, failure)}`
  if (failure.kind === 'temporary') return { kind: 'unreachable', text }
  const codes = [failure.error, ...(/AADSTS\d+/.exec(failure.why) ?? [])]
  const has = (known: ReadonlySet<string>): boolean => codes.some((code) => known.has(code))
  if (has(CONSENT)) return { kind: 'consent', text }
  if (has(CLOCK)) return { kind: 'clock', text }
  const isOver = table.grant === 'refresh_token' && ['no_refresh_token', 'invalid_grant'].includes(failure.error)
  return { kind: isOver ? 'login-ended' : 'credentials', text }
}

/** Resources of Exchange Online, and the id of its application. */
const EXCHANGE: ReadonlySet<string> = new Set([
  'https://outlook.office365.com',
  'https://outlook.office.com',
  'https://ps.outlook.com',
  '00000002-0000-0ff1-ce00-000000000000',
])
const GRAPH: ReadonlySet<string> = new Set(['https://graph.microsoft.com', '00000003-0000-0000-c000-000000000000'])

const GUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Difference between the clocks that an authority or a server may refuse. */
const SKEW: Duration = 2 * MINUTE

export interface TokenFacts {
  readonly claims: TokenClaims
  /** User of the login; null for none. */
  readonly user: string | null
  /** Wall clock time of the answer. */
  readonly now: WallTime
}

/** Faults of a token, by its claims. Empty for one without a visible fault. */
export function tokenFaults(table: OauthTable, { claims, user, now }: TokenFacts): readonly Fault[] {
  const ofMicrosoft =
    table.provider === 'microsoft' ? [audienceFault(table, claims), permissionFault(table, claims), tenantFault(table, claims)] : []
  return [...ofMicrosoft, userFault(table, claims, user), clockFault(claims, now)].filter((fault) => fault !== null)
}

function audienceFault(table: OauthTable, { audience }: TokenClaims): Fault | null {
  const bare = audience.map((one) => one.replace(/\/$/, ''))
  // National clouds have other hosts, such as https://partner.outlook.cn.
  if (bare.length === 0 || bare.some((one) => EXCHANGE.has(one) || /^https:\/\/[\w.-]*outlook[\w.-]*$/.test(one))) return null
  const isGraph = bare.some((one) => GRAPH.has(one))
  const scope =
    table.grant === 'client_credentials' ? 'https://outlook.office365.com/.default' : 'https://outlook.office.com/SMTP.Send offline_access'
  const what = isGraph ? 'the token is for Microsoft Graph' : `the token is for ${bare.join(', ')}`
  const again = table.grant === 'refresh_token' ? `, then ${loginAdvice(table)}` : ''
  return { kind: 'audience', text: `${what}, and Exchange takes none of it: set scope = "${scope}", or remove scope${again}` }
}

const PERMISSIONS = { client_credentials: 'SMTP.SendAsApp', refresh_token: 'SMTP.Send' } as const

function permissionFault(table: OauthTable, { roles, scopes }: TokenClaims): Fault | null {
  const { grant, clientId } = table
  if (grant === 'client_credentials') {
    if (roles.includes(PERMISSIONS.client_credentials)) return null
    const place = 'Office 365 Exchange Online'
    const text = `the token has no role SMTP.SendAsApp: add this application permission of ${place} to the application ${clientId}, and let an administrator grant consent`
    return { kind: 'consent', text }
  }
  if (grant !== 'refresh_token' || scopes.includes(PERMISSIONS.refresh_token)) return null
  const text = `the token has no scope SMTP.Send: add this delegated permission to the application ${clientId}, then ${loginAdvice(table)}`
  return { kind: 'permission', text }
}

/** Fault of a token of another tenant than that of the token endpoint, where the endpoint has its id. */
function tenantFault({ tokenUrl }: OauthTable, { tenant }: TokenClaims): Fault | null {
  const wanted = URL.parse(tokenUrl)?.pathname.split('/')[1] ?? ''
  if (tenant === null || !GUID.test(wanted) || tenant.toLowerCase() === wanted.toLowerCase()) return null
  return { kind: 'tenant', text: `the token is of the tenant ${tenant}, not of ${wanted}: correct tenant, and reload` }
}

/** Fault of the token of a person who is not the user of the login. */
function userFault(table: OauthTable, claims: TokenClaims, user: string | null): Fault | null {
  if (table.grant !== 'refresh_token' || user === null || claims.user === null || claims.user.toLowerCase() === user.toLowerCase())
    return null
  const remedy = `${loginAdvice(table)} as ${user}, or write ${claims.user} to smtp_sasl_password_maps`
  return {
    kind: 'user',
    text: `the token is of ${claims.user}, and the login is that of ${user}, which works for a shared mailbox only: ${remedy}`,
  }
}

function clockFault({ issuedAt, expiresAt }: TokenClaims, now: WallTime): Fault | null {
  const remedy = 'correct the clock (timedatectl)'
  if (issuedAt !== null && issuedAt - now > SKEW)
    return {
      kind: 'clock',
      text: `the clock of this machine is ${Math.round((issuedAt - now) / SECOND)} s behind that of the authority: ${remedy}`,
    }
  if (expiresAt !== null && expiresAt <= now)
    return { kind: 'clock', text: `the new token has ended already by the clock of this machine, which is ahead: ${remedy}` }
  return null
}

interface RefusalFacts {
  readonly user: string
  readonly claims: TokenClaims | null
  /** Faults of the token that was refused. */
  readonly faults: readonly Fault[]
  /** Meaning of the reply; undefined for an unknown one. */
  readonly refusal: LoginRefusal | undefined
  /** Reason with the reply. */
  readonly reason: string
}

/** The fault for which a server refuses a login. */
export function loginFault(table: OauthTable, { user, claims, faults, refusal, reason }: RefusalFacts): Fault {
  if (refusal === undefined) return { kind: 'server', text: reason }
  const hint = reasonWith(reason, refusal.hint)
  if (refusal.kind === 'mailbox') return { kind: 'mailbox', text: `${hint}${mailboxCommand(table, user, claims)}` }
  if (refusal.kind !== 'refused') return { kind: 'refused', text: hint }
  if (!refusal.renews) return { kind: 'smtp-auth-off', text: hint }
  if (faults.length > 0) return { kind: 'refused', text: `${reason}, because of the token` }
  if (table.provider !== 'microsoft' || claims === null) return { kind: 'refused', text: hint }
  if (table.grant !== 'client_credentials')
    return {
      kind: 'mailbox',
      text: `${reason}. The token has the right scope, so that ${user} has no mailbox that it may use, or the mailbox has another name: correct the user`,
    }
  return { kind: 'registration', text: reasonWith(reason, registration(table, user, claims)) }
}

/** The steps in Exchange that a token of an application needs beyond consent, with its ids. */
function registration(table: OauthTable, user: string, claims: TokenClaims): string {
  const { application, object } = claims
  const known = application !== null && object !== null
  const register = known
    ? `New-ServicePrincipal -AppId ${application} -ObjectId ${object}`
    : 'New-ServicePrincipal with the object id of the enterprise application'
  return `The token has the role SMTP.SendAsApp, so that Exchange does not know the application, or it has no right to the mailbox ${user}: run ${register}, then${mailboxCommand(table, user, claims)}, in Exchange Online PowerShell, and wait up to an hour`
}

const mailboxCommand = ({ clientId }: OauthTable, user: string, claims: TokenClaims | null): string =>
  ` Add-MailboxPermission -Identity ${user} -User ${claims?.object ?? clientId} -AccessRights FullAccess`
