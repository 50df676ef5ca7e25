/**
 * Another commit of the repository in a folder for temporary files, ready to run.
 */
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { output } from './child.ts'

export interface Checkout {
  readonly commit: string
  readonly folder: string
  remove(): Promise<void>
}

/** The short id of a commit. Throws when the repository does not have it. */
export const shortId = (root: string, commit: string): Promise<string> =>
  output('git', ['rev-parse', '--verify', '--short', `${commit}^{commit}`], root)

/** Checks a commit out into a new folder, with the packages that its lock file names. */
export async function checkOut(root: string, commit: string, folder: string, signal: AbortSignal): Promise<Checkout> {
  const id = await shortId(root, commit)
  const remove = async () => void (await output('git', ['worktree', 'remove', '--force', folder], root))
  await output('git', ['worktree', 'add', '--detach', folder, id], root, signal)
  try {
    if (runtimePackages(lockFile(folder)) === runtimePackages(lockFile(root))) linkPackages(root, folder)
    else await output('npm', ['ci', '--omit=dev', '--no-audit', '--no-fund'], folder, signal)
  } catch (error) {
    await remove()
    throw error
  }
  return { commit: id, folder, remove }
}

const lockFile = (folder: string): string => readFileSync(join(folder, 'package-lock.json'), 'utf8')

interface Locked {
  readonly version?: string
  readonly dev?: boolean
}

/** The packages that a lock file (version 3) installs for running, with their versions. */
export function runtimePackages(lock: string): string {
  const { packages } = JSON.parse(lock) as { readonly packages: Readonly<Record<string, Locked>> }
  const running = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true)
  return running.map(([path, { version }]) => `${path} ${version}\n`).join('')
}

/** Links each package, not the folder that holds them: a checkout has a compile cache of its own in there. */
function linkPackages(root: string, folder: string): void {
  const [from, to] = [join(root, 'node_modules'), join(folder, 'node_modules')]
  mkdirSync(to)
  for (const name of readdirSync(from).filter((entry) => !entry.startsWith('.'))) symlinkSync(join(from, name), join(to, name))
}
