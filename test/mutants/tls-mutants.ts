/** Planted bugs in TLS policies. The simulation of troubled domains finds each of them. */
import type { SafetyMutant } from './safety-mutants.ts'

const mutant = (name: string, file: string, replace: string, by: string): SafetyMutant => ({
  name,
  file: `src/delivery/${file}`,
  replace,
  by,
  test: 'test/simulation/tls-policies.test.ts',
})

export const TLS_MUTANTS: readonly SafetyMutant[] = [
  mutant(
    'a suppressed record ends the policy',
    'sts/sts-decision.ts',
    "    case 'none':\n    case 'invalid':\n    case 'failed':\n      return { applies, fetch: last ? applies?.id : undefined }",
    "    case 'none':\n    case 'invalid':\n    case 'failed':\n      return { applies: undefined, fetch: last ? applies?.id : undefined }",
  ),
  mutant(
    'a policy is forgotten when its host fails',
    'sts/sts-decision.ts',
    'const applies = kept === undefined || isExpired(kept, now) ? undefined : kept',
    'const applies = kept === undefined || failedAt !== null || announced.kind !== "id" ? undefined : kept',
  ),
  mutant(
    'any mail exchanger is taken',
    'smtp/hop-policy.ts',
    'if (!enforced || namesExchanger(policy.mx, name)) return undefined',
    'if (!enforced || namesExchanger(policy.mx, name) || name !== "") return undefined',
  ),
  mutant(
    'failed look-ups of TLSA records count as none',
    'dane/dane-decision.ts',
    "    case 'failed':\n      return { kind: 'failed' }",
    "    case 'failed':\n      return { kind: 'none' }",
  ),
  mutant(
    'a refusal by DANE lets mail go on at level may',
    'dane/dane-decision.ts',
    "if (tlsa.kind === 'failed') return { kind: 'refused', reason: `TLSA lookup error for ${host}:${port}`, fault: 'lookup' }",
    "if (tlsa.kind === 'failed') return without('TLSA lookup error')",
  ),
  mutant(
    'TLSA records demand TLS with any certificate',
    'dane/dane-decision.ts',
    "return { kind: 'verify', base: tlsa.base, records, half: !dns.mxSecure }",
    "return { kind: 'encrypt', base: tlsa.base, records, usable: true }",
  ),
  mutant(
    'a certificate that no record matches is taken',
    'dane/dane-verification.ts',
    "return pem === undefined ? { kind: 'refused', why: 'no TLSA record matches its certificates' } : { kind: 'anchor', pem }",
    "return pem === undefined ? { kind: 'fits' } : { kind: 'anchor', pem }",
  ),
  mutant(
    'mail is given up when a policy is not met',
    'classify.ts',
    "      return deferred('4.7.5', `Server certificate not verified: ${host}: ${failure.why}`, 'handshake')",
    "      return hard({ status: '5.7.5', reason: `Server certificate not verified: ${host}: ${failure.why}`, stage: 'handshake' }, policy)",
  ),
  mutant(
    'mail is given up when STARTTLS is not offered',
    'classify.ts',
    "      return deferred('4.7.4', `TLS is required, but was not offered by host ${host}`, 'starttls')",
    "      return hard({ status: '5.7.4', reason: `TLS is required, but was not offered by host ${host}`, stage: 'starttls' }, policy)",
  ),
  mutant(
    'kept policies are not read',
    'sts/sts-policies.ts',
    'const kept = await reader.of(domain)',
    "const kept = await reader.of(domain === '' ? domain : '')",
  ),
]
