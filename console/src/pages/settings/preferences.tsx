import { PageHeader } from '../../ui/page.tsx'

export default function PreferencesPage() {
  return <PageHeader title="Preferences" />
}
