/** Keeps the refresh token of a login in `refresh_token_file`. */
import { stat } from 'node:fs/promises'
import { errorCode } from '../system/caught-error.ts'
import { replaceFile, type FileTerms } from '../system/files/replaced-file.ts'

/**
 * Writes a refresh token durably, with mode 0600. An existing file keeps its owner; a new one gets `owner`, as when root logs in for the user
 * of the daemon; null for that of the process. Rejects with the system error.
 */
export async function writeRefreshToken(path: string, refreshToken: string, owner: FileTerms['owner']): Promise<void> {
  const before = await stat(path).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  })
  await replaceFile(path, `${refreshToken}\n`, { mode: 0o600, owner: before ?? owner })
}
