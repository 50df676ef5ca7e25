/** STARTTLS of `deferd sink --tls`: a certificate of the files that are given, or one that the sink makes. */
import { createSecureContext } from 'node:tls'
import { errorMessage } from '../../../system/caught-error.ts'
import type { HostIdentity } from '../../../testkit/remote/policy-host.ts'
import type { RemotePort } from '../../../testkit/scripted/remote-ports.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import { readTextFile } from '../simulate/simulate-options.ts'
import { SinkFiles, type SinkFilesDeps } from './sink-files.ts'

export interface SinkTls {
  readonly identity: HostIdentity
  /** Line that names the CA file; empty for a certificate that was given. */
  readonly introduction: string
}

/** Reads the certificate and its key (PEM). Throws CommandError for files that are no certificate and its key. */
export function givenTls(certFile: string, keyFile = certFile): SinkTls {
  const identity = { cert: readTextFile(certFile), key: readTextFile(keyFile) }
  try {
    createSecureContext(identity)
  } catch (cause) {
    const text = `--tls-cert: ${certFile} and ${keyFile} are no certificate and its key: ${errorMessage(cause)}`
    throw new CommandError(EX.config, text, { cause })
  }
  return { identity, introduction: '' }
}

/** Makes the certificate of the ports, and writes that of its CA to the folder of the sink. */
export function madeTls(folder: string, ports: readonly RemotePort[], deps: SinkFilesDeps): SinkTls {
  const files = new SinkFiles(folder, deps)
  return { identity: files.identity(ports), introduction: `STARTTLS with a certificate of the CA in ${files.path('ca.pem')}\n` }
}
