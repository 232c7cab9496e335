import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Named } from '../core/schemas.ts'
import {
  dateForms,
  defaultPreferences,
  languages,
  preferredZones,
  taskViewName,
  themes,
  tracePlace,
} from './preference-choices.ts'

const preferences = {
  theme: Choice(themes, { description: '`system` follows the system of the browser.' }),
  time_zone: Choice(preferredZones, { description: 'Zone of shown times; `local` is the zone of the browser.' }),
  date_form: Choice(dateForms, { description: 'How dates and numbers are written.' }),
  language: Choice(languages, { description: 'Language of the console.' }),
  trace_url: Type.String({
    maxLength: bounds.trace_url,
    pattern: '^(https?://[^\\s]*\\{trace_id\\}[^\\s]*)?$',
    description: `Where traces are shown: an http or https URL with \`${tracePlace}\` in it. Empty when there is none.`,
  }),
  task_views: Type.Array(
    Type.Object({
      project_id: Type.String({ minLength: 1, maxLength: 32 }),
      name: Type.String({ minLength: 1, maxLength: taskViewName.max, description: 'What the user calls it.' }),
      query: Type.String({
        maxLength: 2000,
        description: 'Filters and order, as the query of the address of the page.',
      }),
    }),
    {
      maxItems: bounds.task_views,
      description: 'Views of the list of tasks, in all projects. Given, they replace all.',
    },
  ),
}
const Preferences = Named('Preferences', Type.Object(preferences))

const common = {
  error_format: 'agents',
  tag: 'Users',
  credentials: ['session'],
  // A viewer chooses a theme as well.
  scope: null,
  bucket: 'user',
  personal: true,
  extension: true,
  path: '/api/v1/auth/preferences',
  without_command: 'they are of the console, and only a browser’s session reads and changes them',
  problems: [],
} as const

export const getPreferences = defineOperation({
  ...common,
  id: 'getPreferences',
  sdk: 'user.preferences',
  method: 'GET',
  summary: 'Read the preferences of the current user',
  description: 'How the console looks to the user, in every browser.',
  responses: [{ status: 200, description: 'The preferences.', schema: Preferences, example: defaultPreferences }],
})

export const updatePreferences = defineOperation({
  ...common,
  id: 'updatePreferences',
  sdk: 'user.updatePreferences',
  unaudited: 'it changes nothing but how the console looks to one user',
  method: 'PUT',
  summary: 'Change the preferences of the current user',
  description: 'Changes the given preferences and keeps the others.',
  body: Type.Partial(Type.Object(preferences)),
  body_example: { theme: 'dark', time_zone: 'UTC' },
  responses: [
    {
      status: 200,
      description: 'The preferences after the change.',
      schema: Preferences,
      example: { ...defaultPreferences, theme: 'dark', time_zone: 'UTC' },
    },
  ],
})

export const preferenceOperations: Operation[] = [getPreferences, updatePreferences] as Operation[]
