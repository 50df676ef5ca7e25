/** Recognizes the configuration file of the package, in the state in which dpkg has installed it. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { errorCode } from '../../system/caught-error.ts'

const STATUS_OF_DPKG = '/var/lib/dpkg/status'

/** True for a file that has the MD5 sum under which dpkg lists it as a conffile. */
export function isUntouched(path: string, statusFile = STATUS_OF_DPKG): boolean {
  const [content, status] = [contentOf(path), contentOf(statusFile)]
  if (content === null || status === null) return false
  const sum = createHash('md5').update(content).digest('hex')
  return status.toString('latin1').includes(`\n ${path} ${sum}\n`)
}

function contentOf(path: string): Buffer | null {
  try {
    return readFileSync(path)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'EACCES') return null
    throw error
  }
}
