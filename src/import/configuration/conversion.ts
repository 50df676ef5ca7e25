/**
 * Converts Postfix's configuration to a deferd.toml that deferd accepts. Comments name all settings without an equivalent. Changes nothing:
 * the caller writes the files.
 */
import { configFrom } from '../../config/load.ts'
import { ConfigError } from '../../config/values/problem.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { ConfigurationDraft, type ConvertedFile } from './configuration-draft.ts'
import { convertListeners } from './listener-conversion.ts'
import { parseMainCf, PostfixParameters, type MainCf } from './main-cf.ts'
import { parseMasterCf, type MasterCf, type MasterService } from './master-cf.ts'
import type { PostfixFiles } from './lookup-sources.ts'
import { convertParameter, convertServerTls, type ParameterContext } from './parameter-conversion.ts'
import { WRITTEN_DEFAULTS } from './postfix-defaults.ts'
import { convertTransports } from './transport-conversion.ts'

interface PostfixFacts {
  /** Folder of main.cf and master.cf. */
  readonly configDirectory: string
  /** Folder of the new deferd.toml. */
  readonly folder: string
  readonly hostname: string
  readonly queueDirectory: string
}

export interface ConvertedConfiguration {
  readonly toml: string
  /** Other files, which deferd.toml names. */
  readonly files: readonly ConvertedFile[]
  /** queue_directory of Postfix. */
  readonly spool: string
}

/** Converts the configuration. Throws an Error when main.cf cannot be read. */
export function convertConfiguration(facts: PostfixFacts, files: PostfixFiles): ConvertedConfiguration {
  const { configDirectory, folder, hostname } = facts
  const main = readMain(configDirectory, files)
  const master = parseMasterCf(files.read(`${configDirectory}/master.cf`) ?? '')
  const parameters = parametersOf(main, master, { ...facts, mynetworks: files.computed(configDirectory, 'mynetworks') })
  const draft = new ConfigurationDraft(folder)
  draft.note(`Converted from ${configDirectory}/main.cf and master.cf. Comments name what deferd has not, or has in another form.`)
  draft.set('queue_directory', facts.queueDirectory)
  if (!parameters.has('myhostname')) draft.set('myhostname', parameters.get('myhostname'))
  const context: ParameterContext = { draft, files, configDirectory, parameters, services: master.services }
  noteMalformed(draft, main, master)
  for (const name of namesOf(main, master)) attempt(name, draft, () => convertParameter(name, context))
  const hasCertificate = attempt('smtpd_tls_cert_file', draft, () => convertServerTls(context)) ?? false
  attempt('inet_interfaces', draft, () =>
    convertListeners({ draft, parameters, services: master.services, hasCertificate, convert: (...of) => convertOverride(context, ...of) }),
  )
  attempt('transport_maps', draft, () => convertTransports(context))
  noteServices(draft, master)
  withdrawProblems(draft, hostname)
  return { toml: draft.toml, files: [...draft.files.values()], spool: parameters.get('queue_directory') }
}

/** Converts a parameter that a service of master.cf overrides. */
function convertOverride(context: ParameterContext, name: string, draft: ConfigurationDraft, parameters: PostfixParameters): void {
  attempt(name, draft, () => convertParameter(name, { ...context, draft, parameters, isOverride: true }))
}

function readMain(folder: string, files: PostfixFiles): MainCf {
  const text = files.read(`${folder}/main.cf`)
  if (text === null) throw new Error(`cannot read ${folder}/main.cf: name the folder with --config-dir DIR`)
  return parseMainCf(text)
}

/** The values of main.cf, under those of the service `smtp` that makes the deliveries. */
function parametersOf(
  { values }: MainCf,
  { services }: MasterCf,
  { configDirectory, hostname, mynetworks }: PostfixFacts & { readonly mynetworks: string | null },
): PostfixParameters {
  const name = hostname.includes('.') ? hostname : `${hostname}.localdomain`
  const machine = new Map([
    ['myhostname', name],
    ['config_directory', configDirectory],
    ['mynetworks', mynetworks ?? '127.0.0.0/8 [::1]/128'],
  ])
  const given = new Map([...values, ...deliveryOverrides(services)])
  const [, domain = 'localdomain'] = /^[^.]+\.(.+)$/.exec(new PostfixParameters(given, machine).get('myhostname')) ?? []
  return new PostfixParameters(given, new Map([...machine, ['mydomain', domain]]))
}

const deliveryOverrides = (services: readonly MasterService[]): ReadonlyMap<string, string> => {
  const client = services.find(({ name, type, command }) => name === 'smtp' && type === 'unix' && command === 'smtp')
  return new Map([...(client?.overrides ?? [])].filter(([name]) => name !== 'syslog_name'))
}

function namesOf({ values }: MainCf, { services }: MasterCf): readonly string[] {
  return [...new Set([...values.keys(), ...deliveryOverrides(services).keys(), ...WRITTEN_DEFAULTS])]
}

/** Runs a part of the conversion. A failure becomes a comment. */
function attempt<T>(name: string, draft: ConfigurationDraft, convert: () => T): T | undefined {
  try {
    return convert()
  } catch (error) {
    draft.note(`${name}: ${errorMessage(error)}`)
    return undefined
  }
}

function noteMalformed(draft: ConfigurationDraft, main: MainCf, master: MasterCf): void {
  for (const { number, text } of main.malformed) draft.note(`main.cf:${number}: ${text}: this is no parameter`)
  for (const number of master.malformed) draft.note(`master.cf:${number}: this is no service`)
}

/** Services without an equivalent. Programs of the default master.cf that no transport uses are left out without a comment. */
function noteServices(draft: ConfigurationDraft, { services }: MasterCf): void {
  for (const { name, type, command, overrides } of services) {
    const isServer = command === 'smtpd' || command === 'postscreen'
    if (type === 'inet' && !isServer) draft.note(`master.cf: ${name}: deferd has no service like ${command}`)
    if (type === 'inet' || command === 'smtp') continue
    for (const [parameter, value] of overrides) {
      if (parameter !== 'syslog_name') draft.note(`master.cf: ${name}: ${parameter} = ${value} has no equivalent`)
    }
  }
}

/** Each round of the validation removes at least one problem. */
const MOST_ROUNDS = 100

/** Turns each value that deferd refuses into a comment. */
function withdrawProblems(draft: ConfigurationDraft, hostname: string): void {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    try {
      configFrom(draft.values, hostname, { where: (...key) => JSON.stringify(key) })
      return
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      const changed = error.problems.map(({ where, text }) => where.startsWith('[') && draft.withdraw(JSON.parse(where) as string[], text))
      if (!changed.includes(true)) throw error
    }
  }
}
