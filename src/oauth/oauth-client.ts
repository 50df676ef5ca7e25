/** The client of an `[oauth.NAME]` table, with the secrets from its files or from the environment. Secrets stand in no error text. */
import { createHash, createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { LoadedConfig } from '../config/load.ts'
import { secretVariable, type OauthTable } from '../config/values/tables/oauth-table.ts'
import { ConfigError, type Problem } from '../config/values/problem.ts'
import { errorCode, errorMessage } from '../system/caught-error.ts'

/** Proof by which the authority knows the client (RFC 6749 §2.3, RFC 7523 §2.2). */
type ClientProof =
  | { readonly kind: 'none' }
  | { readonly kind: 'secret'; readonly secret: string }
  /** `thumbprint` is the SHA-256 of the certificate, in base64url (`x5t#S256`, RFC 7515 §4.1.8). */
  | { readonly kind: 'certificate'; readonly key: KeyObject; readonly thumbprint: string }

/** Key of a service account of Google. */
export interface ServiceAccount {
  readonly email: string
  readonly keyId: string
  readonly key: KeyObject
}

/** Returns the output of the command for a user: the token, and in a second line its lifetime in seconds, if known. */
export type RunTokenCommand = (user: string) => Promise<string>

export interface OauthClient {
  readonly table: OauthTable
  readonly proof: ClientProof
  /** Refresh token of the file; null for other grants, and before the first login. */
  readonly refreshToken: string | null
  readonly account: ServiceAccount | null
  /** Trusted CA certificates (PEM) of `ca_file`; null without. */
  readonly ca: string | null
  /** Null without a command. */
  readonly runCommand: RunTokenCommand | null
}

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Equal for clients whose tokens stand for the same login: all members that a token depends on, apart from the proof of the client. */
export function identityOf({ table, refreshToken, account }: OauthClient): string {
  const { provider, grant, tokenUrl, scope, audience, clientId, command } = table
  const login = refreshToken === null ? '' : sha256(refreshToken)
  return JSON.stringify([provider, grant, tokenUrl, scope, audience, clientId, command, login, account?.email ?? ''])
}

/** Makes the runner of a shell command. */
type TokenCommands = (command: string) => RunTokenCommand

/** Reads the files of all tables. Throws ConfigError with all problems. */
export function readOauthClients(
  { config, oauthSecrets }: Pick<LoadedConfig, 'oauthSecrets'> & { readonly config: Pick<LoadedConfig['config'], 'oauth'> },
  commands: TokenCommands,
): ReadonlyMap<string, OauthClient> {
  const problems: Problem[] = []
  const clients = new Map<string, OauthClient>()
  for (const [name, table] of config.oauth) {
    try {
      clients.set(name, readOauthClient(table, oauthSecrets.get(secretVariable(name)), commands))
    } catch (error) {
      problems.push({ where: table.where, text: `oauth.${JSON.stringify(name)}: ${errorMessage(error)}` })
    }
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return clients
}

/** Reads the files of a table. `secret` is that of the environment. Throws an Error that names member and path, for the first file that is unusable. */
export function readOauthClient(table: OauthTable, secret: string | undefined, commands: TokenCommands): OauthClient {
  return {
    table,
    proof: readProof(table, secret),
    refreshToken: readRefreshToken(table),
    account: table.serviceAccountFile === '' ? null : readServiceAccount(table.serviceAccountFile),
    ca: table.caFile === '' ? null : readAuthorities(table.caFile),
    runCommand: table.grant === 'command' ? commands(table.command) : null,
  }
}

function readProof({ clientSecretFile, clientCertificateFile }: OauthTable, secret: string | undefined): ClientProof {
  if (secret !== undefined) return { kind: 'secret', secret: oneLine(secret, 'the variable with the client secret') }
  if (clientSecretFile !== '') {
    const shown = `client_secret_file: ${clientSecretFile}`
    return { kind: 'secret', secret: oneLine(read('client_secret_file', clientSecretFile), shown) }
  }
  return clientCertificateFile === '' ? { kind: 'none' } : readCertificate(clientCertificateFile)
}

/** A secret without the line break at its end. */
function oneLine(text: string, shown: string): string {
  const line = text.replace(/\r?\n$/, '')
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(line)) return line
  throw new Error(`${shown} has no secret: expected one line of printable ASCII, without blanks at its ends`)
}

function readCertificate(path: string): ClientProof {
  const pem = read('client_certificate_file', path)
  const shown = `client_certificate_file: ${path}`
  const certificate = attempt(() => new X509Certificate(pem), `${shown} has no certificate (PEM)`)
  const key = attempt(() => createPrivateKey(pem), `${shown} has no private key (PEM) without a passphrase beside its certificate`)
  if (key.asymmetricKeyType !== 'rsa')
    throw new Error(`${shown} has a key of type ${key.asymmetricKeyType ?? 'unknown'}: PS256 needs an RSA key`)
  if (!certificate.checkPrivateKey(key)) throw new Error(`${shown} has a key that is not the one of its first certificate`)
  return { kind: 'certificate', key, thumbprint: createHash('sha256').update(certificate.raw).digest('base64url') }
}

/** Null when the file does not exist yet, because `deferd oauth login` creates it. */
function readRefreshToken({ refreshTokenFile: path }: OauthTable): string | null {
  if (path === '') return null
  try {
    return oneLine(readFileSync(path, 'utf8'), `refresh_token_file: ${path}`)
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return null
    if (errorCode(cause) === undefined) throw cause
    throw new Error(`refresh_token_file: cannot read ${path}: ${errorMessage(cause)}`, { cause })
  }
}

function readServiceAccount(path: string): ServiceAccount {
  const text = read('service_account_file', path)
  const shown = `service_account_file: ${path}`
  const expected = `${shown} is no key of a service account: expected the JSON file that the Google Cloud console gives`
  const json: unknown = attempt(() => JSON.parse(text) as unknown, expected)
  const { client_email: email, private_key: pem, private_key_id: keyId = '' } = (json ?? {}) as Readonly<Record<string, unknown>>
  if (typeof email !== 'string' || typeof pem !== 'string' || typeof keyId !== 'string') throw new Error(expected)
  const key = attempt(() => createPrivateKey(pem), `${shown} has no private key (PEM) in private_key`)
  if (key.asymmetricKeyType !== 'rsa') throw new Error(`${shown} has a key that is not RSA: RS256 needs one`)
  return { email, keyId, key }
}

function readAuthorities(path: string): string {
  const pem = read('ca_file', path)
  attempt(() => new X509Certificate(pem), `ca_file: ${path} has no certificate (PEM)`)
  return pem
}

function read(member: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new Error(`${member}: cannot read ${path}: ${errorMessage(cause)}`, { cause })
  }
}

/** The result of `use`. Throws an Error with `failure` alone, because a parser may repeat what it was given. */
function attempt<T>(use: () => T, failure: string): T {
  try {
    return use()
  } catch (cause) {
    throw new Error(failure, { cause })
  }
}
