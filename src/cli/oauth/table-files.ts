/** The files of an `[oauth.NAME]` table, without their contents. */
import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import type { OauthTable } from '../../config/values/tables/oauth-table.ts'
import { errorMessage } from '../../system/caught-error.ts'
import type { WallTime } from '../../system/clock.ts'

interface TableFile {
  /** Member of the table that names the file. */
  readonly member: string
  readonly path: string
  /** Reason why the file cannot be used, or should be changed; null without a problem. */
  readonly problem: string | null
}

/** Bits of the mode with which others than the owner read a file. */
const OTHERS_READ = 0o044

export function filesOf(table: OauthTable): readonly TableFile[] {
  const secret = [
    ['client_secret_file', table.clientSecretFile],
    ['client_certificate_file', table.clientCertificateFile],
    ['refresh_token_file', table.refreshTokenFile],
    ['service_account_file', table.serviceAccountFile],
  ] as const
  const files = [
    ...secret.map(([member, path]) => ({ member, path, isSecret: true })),
    { member: 'ca_file', path: table.caFile, isSecret: false },
  ]
  return files.filter(({ path }) => path !== '').map(({ member, path, isSecret }) => ({ member, path, problem: problemOf(path, isSecret) }))
}

function problemOf(path: string, isSecret: boolean): string | null {
  try {
    const file = statSync(path, { throwIfNoEntry: false })
    if (file === undefined) return 'does not exist'
    return isSecret && (file.mode & OTHERS_READ) !== 0 ? `is readable by others than its owner: chmod 600 ${path}` : null
  } catch (error) {
    return errorMessage(error)
  }
}

interface CertificateFacts {
  readonly subject: string
  readonly expiresAt: WallTime
}

/** The first certificate of a file; null when there is none, which `clientOf` reports. */
export function certificateOf({ clientCertificateFile: path }: OauthTable): CertificateFacts | null {
  if (path === '') return null
  try {
    const { subject, validToDate } = new X509Certificate(readFileSync(path))
    return { subject: subject.replaceAll('\n', ', '), expiresAt: validToDate.getTime() }
  } catch {
    return null
  }
}
