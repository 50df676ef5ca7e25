/** Files in the folder of a sink, and the certificates that are derived from its seed. The next sink with the folder has the same ones. */
import { createHmac } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Random } from '../../../system/random.ts'
import type { CertificateTerms, MadeCertificate } from '../../../testkit/remote/certificate-maker.ts'
import type { RemotePort } from '../../../testkit/scripted/remote-ports.ts'

export interface SinkFilesDeps {
  /** Source of the seed, which cannot be predicted. */
  readonly random: Random
  /** Makes certificates; loaded on demand with the rest of the sink. */
  readonly makeCertificate: (terms: CertificateTerms) => MadeCertificate & { readonly subject: string }
}

/** Files of a sink, with mode 0600, in a folder that is private to the user. */
export class SinkFiles {
  readonly #folder: string
  readonly #seed: Buffer
  readonly #makeCertificate: SinkFilesDeps['makeCertificate']

  constructor(folder: string, { random, makeCertificate }: SinkFilesDeps) {
    this.#folder = resolve(folder)
    this.#makeCertificate = makeCertificate
    this.#seed = Buffer.from(this.keep('seed', () => randomOctets(random).toString('hex')).trim(), 'hex')
  }

  path(name: string): string {
    return join(this.#folder, name)
  }

  write(name: string, text: string): void {
    writeFileSync(this.path(name), text, { mode: 0o600 })
  }

  /** Text of the file `name`. Creates the file with the text of `make` when it does not exist. */
  keep(name: string, make: () => string): string {
    if (!existsSync(this.path(name))) this.write(name, make())
    return readFileSync(this.path(name), 'utf8')
  }

  derived(name: string): Buffer {
    return createHmac('sha256', this.#seed).update(name).digest()
  }

  /** Certificate of the ports and of `addresses`. Writes that of its issuer to `ca.pem`. */
  identity(ports: readonly RemotePort[], ...addresses: readonly string[]): MadeCertificate {
    const issuer = this.#makeCertificate({ seed: this.derived('authority of certificates'), subject: 'deferd sink CA', isAuthority: true })
    this.write('ca.pem', issuer.cert)
    const own = ports.flatMap((port) => [port.mx, port.at.address])
    const names = [...new Set(['localhost', '127.0.0.1', '::1', ...addresses, ...own])]
    return this.#makeCertificate({ seed: this.derived('certificate'), subject: 'deferd sink', names, issuer })
  }
}

const randomOctets = (random: Random): Buffer =>
  Buffer.from(Array.from({ length: 32 }, (_, i) => Math.floor(random.draw(`octet ${i}`) * 256)))
