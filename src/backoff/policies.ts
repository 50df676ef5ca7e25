/** Table of policies by name, as accepted by `retry_backoff` and `--policy`. */
import { awsDecorrelated, awsEqualJitter, awsFullJitter, awsSimpledb, googleDrive, googleHttp } from './cloud.ts'
import { faktory, opensmtpd, qmail, sidekiq } from './long-running.ts'
import { ethernet, quic, tcp, thain, wifi } from './network.ts'
import { age, doubling, fixed, haraka, kumomta } from './plain.ts'
import type { Formula } from './policy.ts'

/** Formulas by name. */
export const FORMULAS = {
  doubling,
  age,
  fixed,
  ethernet,
  wifi,
  thain,
  'google-http': googleHttp,
  'google-drive': googleDrive,
  'aws-simpledb': awsSimpledb,
  'aws-full-jitter': awsFullJitter,
  'aws-equal-jitter': awsEqualJitter,
  'aws-decorrelated': awsDecorrelated,
  sidekiq,
  faktory,
  tcp,
  quic,
  qmail,
  opensmtpd,
  haraka,
  kumomta,
} as const satisfies Record<string, Formula>

/** Name of a formula. */
export type FormulaName = keyof typeof FORMULAS

/** Returns the formula of a name. The type has the names of the parameters as plain strings. */
export const formulaOf = (name: FormulaName): Formula => FORMULAS[name]

export const isFormulaName = (name: string): name is FormulaName => Object.hasOwn(FORMULAS, name)

/** Names that stand for other policies with fixed parameters. */
export const SCHEDULES: Readonly<Record<string, string>> = {
  zonemta: 'table(5m,7m,8m,25m,75m,2h,4h)',
  exchange: 'table(1m,1m,1m,1m,5m,5m,5m,5m,5m,5m,10m)',
  sendmail: 'fixed(wait=1h)',
  rfc5321: 'table(30m,30m,150m)',
}
