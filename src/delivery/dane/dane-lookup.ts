/** Looks up the TLSA records of a mail exchanger (RFC 7672 §2.2). */
import type { Net } from '../../system/net.ts'
import type { Host } from '../routing/host-order.ts'
import { tlsaAnswer, tlsaQuestion, type TlsaAnswer } from './dane-decision.ts'

export async function lookUpTlsa({ name: host, port, dns }: Host, net: Pick<Net, 'lookupSecure'>): Promise<TlsaAnswer> {
  if (dns === undefined) return { kind: 'none' }
  const question = tlsaQuestion(host, dns)
  switch (question.kind) {
    case 'none':
      return { kind: 'none' }
    case 'names':
      return firstAnswer(question.names, port, net)
    case 'alias': {
      const alias = await net.lookupSecure(host, 'CNAME')
      if (alias.kind === 'failed') return { kind: 'failed' }
      return alias.secure ? firstAnswer([host], port, net) : { kind: 'none' }
    }
  }
}

/** The first answer with records. A failed look-up ends the search, because it could hide records. */
async function firstAnswer(names: readonly string[], port: number, net: Pick<Net, 'lookupSecure'>): Promise<TlsaAnswer> {
  for (const name of names) {
    const answer = tlsaAnswer(name, await net.lookupSecure(`_${port}._tcp.${name}`, 'TLSA'))
    if (answer.kind !== 'none') return answer
  }
  return { kind: 'none' }
}
