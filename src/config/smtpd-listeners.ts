/** Addresses, rules and certificate of the SMTP server's listeners. */
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { errorMessage } from '../system/caught-error.ts'
import type { Config } from './options.ts'
import type { ListenerBlock } from './values/values.ts'

interface KeyPair {
  readonly cert: Buffer
  readonly key: Buffer
}

/** One certificate with its key, or the chains of several keys. */
export type Certificate = KeyPair | { readonly cert: string[]; readonly key: string[] }

type CertificateSettings = Pick<Config, 'smtpd_tls_cert_file' | 'smtpd_tls_key_file' | 'smtpd_tls_chain_files'>

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
export function readCertificate(config: ListenerSettings & CertificateSettings): Certificate | null {
  const { smtpd_tls_cert_file: certFile, smtpd_tls_key_file: keyFile } = config
  if (blocksOf(config).every(({ tls }) => tls === 'none')) return null
  if (config.smtpd_tls_chain_files.length > 0) return readChains(config.smtpd_tls_chain_files)
  if (certFile === '') throw new CertificateUnusable('smtpd_tls_cert_file: a listener offers TLS, but there is no certificate')
  return readKeyPair('smtpd_tls', certFile, keyFile)
}

/**
 * Reads and validates smtpd_tls_chain_files: keys, each followed by its certificate and those of its authorities, in one file or several.
 * Throws CertificateUnusable.
 */
function readChains(paths: readonly string[]): Certificate {
  const text = paths.map((path) => readPem(path, 'smtpd_tls_chain_files').toString('latin1')).join('\n')
  const blocks = text.match(/-----BEGIN ([^-]+)-----[^]*?-----END \1-----/g) ?? []
  const chains: { readonly key: string; cert: string }[] = []
  for (const block of blocks) {
    const chain = chains.at(-1)
    if (/^-----BEGIN [^-]*PRIVATE KEY/.test(block)) chains.push({ key: block, cert: '' })
    else if (chain !== undefined && block.startsWith('-----BEGIN CERTIFICATE')) chain.cert += `${block}\n`
    else if (chain === undefined)
      throw new CertificateUnusable(`smtpd_tls_chain_files: ${paths.join(', ')}: a certificate is before its key; name the key first`)
  }
  const certificate = { cert: chains.map(({ cert }) => cert), key: chains.map(({ key }) => key) }
  try {
    if (chains.length === 0 || certificate.cert.includes('')) throw new Error('a key, or its certificate, is missing')
    createSecureContext(certificate)
  } catch (cause) {
    throw new CertificateUnusable(`smtpd_tls_chain_files: ${paths.join(', ')}: ${errorMessage(cause)}`, { cause })
  }
  return certificate
}

/** Reads and validates a certificate and its key. `prefix` begins the names of the two parameters. Throws CertificateUnusable. */
export function readKeyPair(prefix: 'smtpd_tls' | 'admin_tls', certFile: string, keyFile: string): KeyPair {
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
