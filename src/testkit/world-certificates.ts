/** Certificates of the servers in worlds. All worlds have the same authority, whose key everyone can derive: trust it in worlds only. */
import { makeCertificate } from './remote/certificate-maker.ts'
import type { HostIdentity } from './remote/policy-host.ts'

const ISSUER = makeCertificate({ seed: 'certification authority of test worlds', isAuthority: true })

/** Certificate (PEM) of the authority that signs the certificates of `world.authority`. The relay of a world trusts it by default. */
export const WORLD_CA: string = ISSUER.cert

export const worldIdentity = (host: string): HostIdentity =>
  makeCertificate({ seed: `host ${host}`, subject: host, names: [host], issuer: ISSUER })
