/** What the SMTP server listens on, under which rules, and with which certificate. */
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { Config } from '../config/options.ts'
import type { ListenerBlock } from '../config/values.ts'

export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

type ListenerSettings = Pick<Config, 'smtpd_listen' | 'smtpd_tls_security_level' | 'smtpd_sasl_auth_enable' | 'smtpd'>

/** The listeners of smtpd_listen, all alike, and those with a table of their own. */
export function blocksOf(config: ListenerSettings): readonly ListenerBlock[] {
  const tls = config.smtpd_tls_security_level
  const auth = config.smtpd_sasl_auth_enable ? 'may' : 'none'
  return [...config.smtpd_listen.map((address) => ({ address, tls, auth }) as const), ...config.smtpd]
}

/** The certificate of our listeners cannot be used (EX_CONFIG). */
export class CertificateUnusable extends Error {
  override readonly name = 'CertificateUnusable'
  readonly exitCode = 78
}

/** The certificate, read and tried; null when no listener needs one. */
export async function readCertificate(
  config: ListenerSettings & Pick<Config, 'smtpd_tls_cert_file' | 'smtpd_tls_key_file'>,
): Promise<Certificate | null> {
  const { smtpd_tls_cert_file: certFile, smtpd_tls_key_file: keyFile } = config
  if (blocksOf(config).every(({ tls }) => tls === 'none')) return null
  if (certFile === '') throw new CertificateUnusable('smtpd_tls_cert_file: a listener offers TLS, but there is no certificate')
  const certificate = { cert: await readPem(certFile, 'smtpd_tls_cert_file'), key: await readPem(keyFile, 'smtpd_tls_key_file') }
  try {
    createSecureContext(certificate)
  } catch (cause) {
    throw new CertificateUnusable(`${certFile} and ${keyFile} are no certificate and its key: ${(cause as Error).message}`, { cause })
  }
  return certificate
}

async function readPem(path: string, parameter: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (cause) {
    throw new CertificateUnusable(`${parameter}: cannot read ${path}: ${(cause as Error).message}`, { cause })
  }
}
