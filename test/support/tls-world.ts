/** A world with TLS: hosts with certificates of a CA that the relay trusts, and MTA-STS policies with their records. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { createWorld, type World, type WorldConfig } from '../../src/testkit/index.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import type { PolicyAnswer } from '../../src/testkit/remote/policy-host.ts'
import { makeCertificate, type CertificateTerms } from '../../src/testkit/remote/certificate-maker.ts'

export const TEST_AUTHORITY = makeCertificate({ seed: 'Test CA', isAuthority: true })

export interface Policy {
  readonly id: string
  readonly mode?: 'enforce' | 'testing' | 'none'
  readonly mx?: readonly string[]
  /** Seconds. */
  readonly maxAge?: number
}

/** The text of a policy. */
export const policyText = ({ mode = 'enforce', mx = [], maxAge = 604_800 }: Policy): string =>
  ['version: STSv1', `mode: ${mode}`, ...mx.map((name) => `mx: ${name}`), `max_age: ${maxAge}`, ''].join('\r\n')

export class TlsWorld implements AsyncDisposable {
  readonly world: World
  /** Reports of unmet policies. */
  readonly failures: Extract<QueueEvent, { kind: 'tls-policy-failed' }>[] = []
  /** Warnings in the log. */
  readonly warnings: string[] = []
  /** Number of requests to policy hosts. */
  requests = 0

  private constructor(world: World) {
    this.world = world
    world.relayEvents.listen((event) => {
      if (event.kind === 'tls-policy-failed') this.failures.push(event)
      if (event.kind === 'note' && event.level === 'warning') this.warnings.push(event.text)
    })
  }

  static async open(config: WorldConfig = {}, options: { readonly seed?: number } = {}): Promise<TlsWorld> {
    const ca = join(mkdtempSync(join(tmpdir(), 'deferd-ca-')), 'ca.pem')
    writeFileSync(ca, TEST_AUTHORITY.cert)
    return new TlsWorld(await createWorld({ ...options, config: { smtp_tls_CAfile: ca, ...config } }))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.world.close()
  }

  /** Gives a host a certificate for its name; other terms may replace the name, the dates or the issuer. */
  secure(host: string, terms: Partial<CertificateTerms> = {}): this {
    this.world.remote.setIdentity(host, makeCertificate({ seed: host, names: [host], issuer: TEST_AUTHORITY, ...terms }))
    return this
  }

  /** Takes STARTTLS away from a host. */
  unsecure(host: string): this {
    this.world.remote.setIdentity(host, null)
    return this
  }

  /** Publishes the record and the policy of a domain. */
  publish(domain: string, policy: Policy): this {
    return this.record(domain, `v=STSv1; id=${policy.id};`).serve(domain, () => ({ body: policyText({ mx: [`mx.${domain}`], ...policy }) }))
  }

  /** Sets the TXT records of a domain. */
  record(domain: string, ...txt: readonly string[]): this {
    this.world.remote.setZone(`_mta-sts.${domain}`, { mx: [], a: [], aaaa: [], txt })
    return this
  }

  /** Sets the answer of the policy host; null leaves requests without an answer. */
  serve(domain: string, answer: () => PolicyAnswer | null, names = [`mta-sts.${domain}`]): this {
    const identity = makeCertificate({ seed: `mta-sts.${domain}`, names, issuer: TEST_AUTHORITY })
    this.world.remote.setPolicyHost(`mta-sts.${domain}`, {
      identity,
      answer: (path) => {
        this.requests++
        return path === '/.well-known/mta-sts.txt' ? answer() : { status: 404, body: '' }
      },
    })
    return this
  }

  /** Closes the port of the policy host. */
  unserve(domain: string): this {
    this.world.remote.setPolicyHost(`mta-sts.${domain}`, null)
    return this
  }

  async send(...to: readonly string[]): Promise<void> {
    await createTransport(this.world.transport()).sendMail({ from: 'app@us.example', to: [...to], text: 'hi' })
  }
}
