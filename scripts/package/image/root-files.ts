/** The files of an image beside those of Debian's packages. */
import { bomEntries, programEntries, type RelaySources } from '../layout.ts'
import { text, type Entry } from '../entry.ts'
import type { OwnFolder, TarContents } from '../tar.ts'
import { USER_ID } from './image-config.ts'

/** Folder of the queue. */
export const QUEUE = 'var/lib/deferd'

const folder = (path: string, mode = 0o755, owner = 0): OwnFolder => ({ path, mode, owner })

/** Places of mounts. */
const FOLDERS = [folder('dev'), folder('proc'), folder('sys'), folder('run'), folder('tmp', 0o1777)]

/** The host mounts its files of these names. */
const HOST_FILES = ['etc/hostname', 'etc/hosts', 'etc/resolv.conf']

/** The first layer: a system without a shell. */
export const baseContents = (debian: readonly Entry[]): TarContents => ({
  entries: [
    ...debian,
    text('etc/passwd', `root:x:0:0:root:/:/nonexistent\ndeferd:x:${USER_ID}:${USER_ID}:deferd mail relay:/${QUEUE}:/nonexistent\n`),
    text('etc/group', `root:x:0:\ndeferd:x:${USER_ID}:\n`),
    text('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
    ...HOST_FILES.map((path) => text(path, '')),
  ],
  folders: FOLDERS,
})

const CONFIGURATION = `# Configuration of deferd in the image. Parameters can be set by variables such as DEFERD_RELAYHOST too, which override this file.
queue_directory = "/${QUEUE}"
smtpd_listen = ["0.0.0.0:2525"]
`

/** The second layer: the program. Other users pass through the folder of the queue to the maildrop. */
export const programContents = (sources: RelaySources, boms: RelaySources['boms']): TarContents => ({
  entries: [
    ...programEntries(sources),
    text('etc/deferd/deferd.toml', CONFIGURATION),
    text('usr/share/doc/deferd/copyright', sources.copyright),
    ...bomEntries(boms),
  ],
  folders: [folder(QUEUE, 0o711, USER_ID)],
})
