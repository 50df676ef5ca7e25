/**
 * The files of keys and passwords that the configuration names, read once. Their content goes nowhere but to the
 * deliveries: not into logs, not into `deferd config`.
 */
import { readFileSync } from 'node:fs'
import type { Config } from '../config/options.ts'
import type { DeliverySecrets } from '../delivery/smtp-agent.ts'

type Named = Pick<Config, 'smtp_sasl_password_maps' | 'smtp_tls_CAfile' | 'smtp_tls_cert_file' | 'smtp_tls_key_file'>

/** Throws with a sentence for the operator when a file cannot be read. */
export function readDeliverySecrets(config: Named): DeliverySecrets {
  return {
    passwords: read('smtp_sasl_password_maps', config.smtp_sasl_password_maps.replace(/^(?:texthash|file):/, '')),
    tls: {
      ca: read('smtp_tls_CAfile', config.smtp_tls_CAfile),
      cert: read('smtp_tls_cert_file', config.smtp_tls_cert_file),
      key: read('smtp_tls_key_file', config.smtp_tls_key_file),
    },
  }
}

function read(parameter: string, path: string): string | undefined {
  if (path === '') return undefined
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new Error(`${parameter}: cannot read ${path}`, { cause })
  }
}
