int main()
{
	volatile bool on = true;

	while (on)
		;
}
