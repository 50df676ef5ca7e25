/** Addresses, rules and certificate of the SMTP server's listeners. */
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { errorMessage } from '../system/caught-error.ts'
import type { Config } from './options.ts'
import type { ListenerBlock } from './values/values.ts'

export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

type ListenerSettings = Pick<
  Config,
  'smtpd_listen' | 'smtpd_tls_security_level' | 'smtpd_sasl_auth_enable' | 'smtpd_upstream_proxy_protocol' | 'smtpd'
>

/** Returns the listeners of smtpd_listen, which use the global settings, and those of the [[smtpd]] tables. */
export function blocksOf(config: ListenerSettings): readonly ListenerBlock[] {
  const tls = config.smtpd_tls_security_level
  const auth = config.smtpd_sasl_auth_enable ? 'may' : 'none'
  const { smtpd_upstream_proxy_protocol: upstream_proxy_protocol } = config
  return [...config.smtpd_listen.map((address) => ({ address, tls, auth, upstream_proxy_protocol }) as const), ...config.smtpd]
}

/** The certificate of the listeners cannot be used (78, EX_CONFIG). */
export class CertificateUnusable extends Error {
  override readonly name = 'CertificateUnusable'
  readonly exitCode = 78
}

/** Reads and validates the certificate. Returns null when no listener needs one. Throws CertificateUnusable. */
export function readCertificate(config: ListenerSettings & Pick<Config, 'smtpd_tls_cert_file' | 'smtpd_tls_key_file'>): Certificate | null {
  const { smtpd_tls_cert_file: certFile, smtpd_tls_key_file: keyFile } = config
  if (blocksOf(config).every(({ tls }) => tls === 'none')) return null
  if (certFile === '') throw new CertificateUnusable('smtpd_tls_cert_file: a listener offers TLS, but there is no certificate')
  return readKeyPair('smtpd_tls', certFile, keyFile)
}

/** Reads and validates a certificate and its key. `prefix` begins the names of the two parameters. Throws CertificateUnusable. */
export function readKeyPair(prefix: 'smtpd_tls' | 'admin_tls', certFile: string, keyFile: string): Certificate {
  const certificate = { cert: readPem(certFile, `${prefix}_cert_file`), key: readPem(keyFile, `${prefix}_key_file`) }
  try {
    createSecureContext(certificate)
  } catch (cause) {
    throw new CertificateUnusable(
      `${prefix}_cert_file: ${certFile} and ${keyFile} are no certificate and its key: ${errorMessage(cause)}`,
      {
        cause,
      },
    )
  }
  return certificate
}

function readPem(path: string, parameter: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new CertificateUnusable(`${parameter}: cannot read ${path}: ${errorMessage(cause)}`, { cause })
  }
}
