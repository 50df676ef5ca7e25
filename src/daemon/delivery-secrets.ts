/**
 * Reads the key and password files named in the configuration. Only deliveries use their contents: neither the log nor `deferd
 * config` prints them.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { errorMessage } from '../system/caught-error.ts'
import { isMountedSecret } from '../config/values/mounted-secret.ts'
import type { Config } from '../config/options.ts'
import { malformedLogins } from '../delivery/tls/sasl-credentials.ts'
import type { TlsFiles } from '../delivery/tls/tls-policy.ts'

type SecretFiles = Pick<
  Config,
  'smtp_sasl_password_maps' | 'smtp_tls_CAfile' | 'smtp_tls_mta_sts_CAfile' | 'smtp_tls_cert_file' | 'smtp_tls_key_file'
>

/**
 * The contents of the file of smtp_sasl_password_maps; undefined when the parameter is empty. Throws an Error that names
 * parameter and path.
 */
export function readPasswords(config: Pick<Config, 'smtp_sasl_password_maps' | 'oauth'>): string | undefined {
  const path = pathOf(config.smtp_sasl_password_maps)
  const passwords = read('smtp_sasl_password_maps', path)
  const [malformed] = malformedLogins(passwords ?? '', config.oauth)
  if (malformed !== undefined) throw new Error(`smtp_sasl_password_maps: ${path} ${malformed}`)
  return passwords
}

/** The files for TLS to next hops. Throws an Error that names parameter and path. */
export function readTlsFiles(config: Omit<SecretFiles, 'smtp_sasl_password_maps'>): TlsFiles {
  const { smtp_tls_CAfile: caFile, smtp_tls_cert_file: certFile, smtp_tls_key_file: keyFile } = config
  const ca = read('smtp_tls_CAfile', caFile)
  const cert = read('smtp_tls_cert_file', certFile)
  const key = read('smtp_tls_key_file', keyFile)
  if (ca !== undefined) attempt(() => new X509Certificate(ca), `smtp_tls_CAfile: ${caFile} has no certificate (PEM)`)
  const { smtp_tls_mta_sts_CAfile: policyCaFile } = config
  const policyHostCa = read('smtp_tls_mta_sts_CAfile', policyCaFile)
  if (policyHostCa !== undefined) {
    attempt(() => new X509Certificate(policyHostCa), `smtp_tls_mta_sts_CAfile: ${policyCaFile} has no certificate (PEM)`)
  }
  if (key !== undefined && cert === undefined) throw new Error(`smtp_tls_key_file: ${keyFile} has no use without smtp_tls_cert_file`)
  if (cert !== undefined) {
    const names = `smtp_tls_cert_file: ${certFile} and ${keyFile || certFile} are no certificate and its key`
    attempt(() => createSecureContext({ cert, key: key ?? cert }), names)
  }
  return { ca, cert, key, policyHostCa }
}

function attempt(use: () => unknown, failure: string): void {
  try {
    use()
  } catch (cause) {
    throw new Error(`${failure}: ${errorMessage(cause)}`, { cause })
  }
}

/** The path of a table without its type. */
const pathOf = (table: string): string => table.replace(/^(?:texthash|file):/, '')

type PrivateFiles = Pick<
  Config,
  | 'oauth'
  | 'smtpd'
  | 'smtpd_sasl_users_file'
  | 'smtp_sasl_password_maps'
  | 'smtpd_tls_key_file'
  | 'smtpd_tls_chain_files'
  | 'smtp_tls_key_file'
>

/**
 * A sentence for each file with passwords or keys that every local user may read, and for each secret file of an `[oauth.NAME]` table that
 * others than its owner may read.
 */
export function readableSecrets(config: PrivateFiles): readonly string[] {
  const paths = [
    config.smtpd_sasl_users_file,
    pathOf(config.smtp_sasl_password_maps),
    config.smtpd_tls_key_file,
    ...config.smtpd_tls_chain_files,
    ...config.smtpd.flatMap(({ settings }) => [settings.smtpd_tls_key_file ?? '', ...(settings.smtpd_tls_chain_files ?? [])]),
    config.smtp_tls_key_file,
  ]
  const ofTables = [...config.oauth.values()].flatMap((table) => [
    table.clientSecretFile,
    table.clientCertificateFile,
    table.refreshTokenFile,
    table.serviceAccountFile,
  ])
  return [
    ...withMode(paths, 0o004).map((path) => `${path} is readable by every local user: chmod o-r ${path}`),
    ...withMode(ofTables, 0o044).map((path) => `${path} is readable by others than its owner: chmod 600 ${path}`),
  ]
}

/** Existing files whose mode has one of the bits, but for those that a container gets from its runtime. */
const withMode = (paths: readonly string[], bits: number): readonly string[] =>
  [...new Set(paths)].filter(
    (path) => path !== '' && ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & bits) !== 0 && !isMountedSecret(path),
  )

function read(parameter: string, path: string): string | undefined {
  if (path === '') return undefined
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new Error(`${parameter}: cannot read ${path}: ${errorMessage(cause)}`, { cause })
  }
}
