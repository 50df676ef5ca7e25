/** The two packages: relations, descriptions, files and maintainer scripts. */
import type { Control } from './control.ts'
import type { Entry } from './entry.ts'
import { CONFFILES, mtaEntries, relayEntries, type CommonTexts, type RelaySources } from './layout.ts'

export interface Package {
  readonly control: Control
  readonly entries: readonly Entry[]
  readonly conffiles: readonly string[]
  /** Maintainer scripts (deb-postinst(5) and others) by name. */
  readonly scripts: ReadonlyMap<string, string>
}

export interface Release {
  readonly version: string
  readonly maintainer: string
}

export interface RelayBuild extends Release {
  readonly architecture: string
  /** Relation to the packages of the shared libraries: `libc6 (>= 2.34), …`. */
  readonly libraries: string
}

const SCRIPTS = ['postinst', 'prerm', 'postrm']

export function relayPackage({ version, maintainer, architecture, libraries }: RelayBuild, sources: RelaySources): Package {
  return {
    control: {
      name: 'deferd',
      version,
      architecture,
      maintainer,
      relations: { Depends: `adduser, ${libraries}`, Recommends: 'ca-certificates', Suggests: 'deferd-mta, logrotate' },
      description: [
        'SMTP relay with a durable deferred queue',
        'deferd answers 250 after a message is on disk, retries mail that a remote',
        'server defers, and returns failures to the sender. Parameters, commands and',
        'log are those of Postfix, wherever Postfix has them.',
        '',
        'The package has a Node.js of its own. It can be installed beside another mail',
        'server: it listens on 127.0.0.1, port 2525, until its configuration is changed.',
      ],
    },
    entries: relayEntries(sources),
    conffiles: CONFFILES,
    scripts: new Map(SCRIPTS.map((name) => [name, sources.read(`scripts/package/debian/deferd.${name}`)])),
  }
}

export function mtaPackage({ version, maintainer }: Release, texts: CommonTexts): Package {
  const role = 'mail-transport-agent'
  return {
    control: {
      name: 'deferd-mta',
      version,
      architecture: 'all',
      maintainer,
      relations: { Depends: `deferd (>= ${version})`, Provides: role, Conflicts: role, Replaces: role },
      description: [
        'sendmail and other commands of Postfix, for deferd',
        'Makes deferd the mail transport agent of the system: /usr/sbin/sendmail, mailq,',
        'newaliases, postqueue, postsuper, postcat and qshape.',
      ],
    },
    entries: mtaEntries(texts),
    conffiles: [],
    scripts: new Map(),
  }
}
